"use strict";
{
  const read = (id) => JSON.parse(document.getElementById(id).textContent);

  Promise.all(Object.entries(read("figures")).map(drawFigure)).then((drawn) => {
    document.body.dataset.drawn = drawn.filter(Boolean).length;
    document.body.dataset.failed = drawn.length - document.body.dataset.drawn;
  });

  // what scrolls sideways fades where it goes on
  const fade = (box) => box.classList.toggle("more", box.scrollLeft + box.clientWidth < box.scrollWidth - 2);
  const scrolling = ".scroll, .figure, .tall";
  const resized = new ResizeObserver((changed) => changed.forEach(({ target }) => fade(target.closest(scrolling))));
  for (const box of document.querySelectorAll(scrolling)) {
    for (const each of [box, ...box.children]) resized.observe(each);
    box.addEventListener("scroll", () => fade(box), { passive: true });
  }

  // a chart shrinks as long as its letters can be read, then it scrolls
  for (const each of document.querySelectorAll(".scroll svg")) each.style.minWidth = `${0.85 * each.width.baseVal.value}px`;

  const showAgents = () => {
    const MOST_SHOWN = 200;
    const { columns, rows } = read("agents-data");
    const texts = rows.map((row) => row.join("\n").toLowerCase());
    const heads = [...document.querySelectorAll(".agents th")];
    const isNumber = columns.map((_, place) => rows.some((row) => typeof row[place] === "number"));
    const body = document.querySelector(".agents tbody");
    const search = document.getElementById("search");
    const matches = document.getElementById("matches");
    let order = rows.map((_, number) => number);

    const lineOf = (row) => {
      const line = document.createElement("tr");
      row.forEach((value, place) => {
        const cell = line.insertCell();
        cell.textContent = typeof value === "number" ? value.toLocaleString("en") : value ?? "";
        if (isNumber[place]) cell.className = "number";
        else cell.title = cell.textContent;
      });
      return line;
    };

    const show = () => {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      const found = order.filter((number) => words.every((word) => texts[number].includes(word)));
      body.replaceChildren(...found.slice(0, MOST_SHOWN).map((number) => lineOf(rows[number])));
      const count = found.length.toLocaleString("en");
      matches.textContent = found.length > MOST_SHOWN
        ? `the first ${MOST_SHOWN} of ${count} that match are shown`
        : `${count} of ${rows.length.toLocaleString("en")} agents`;
    };

    const sortBy = (place) => {
      const falling = heads[place].hasAttribute("aria-sort")
        ? heads[place].getAttribute("aria-sort") === "ascending"
        : isNumber[place];
      const compare = isNumber[place]
        ? (one, other) => (one ?? 0) - (other ?? 0)
        : (one, other) => (one ?? "").localeCompare(other ?? "", "en", { numeric: true });
      order = rows.map((_, number) => number)
        .sort((one, other) => (falling ? -1 : 1) * compare(rows[one][place], rows[other][place]));
      heads.forEach((head) => head.removeAttribute("aria-sort"));
      heads[place].setAttribute("aria-sort", falling ? "descending" : "ascending");
      show();
    };

    heads.forEach((head, place) => {
      if (isNumber[place]) head.className = "number";
      head.querySelector("button").addEventListener("click", () => sortBy(place));
    });
    search.addEventListener("input", show);
    show();
  };

  if (document.getElementById("agents-data")) showAgents();
}
