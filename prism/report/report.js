"use strict";
{
  const figures = JSON.parse(document.getElementById("figures").textContent);

  Promise.all(Object.entries(figures).map(([name, spec]) => drawFigure([`figure-${name}`, spec]))).then((drawn) => {
    document.body.dataset.failed = drawn.filter((each) => !each).length;
    document.body.dataset.drawn = drawn.filter(Boolean).length;
  });

  // a chart shrinks as long as its letters can be read, then it scrolls
  for (const each of document.querySelectorAll(".scroll > svg")) each.style.minWidth = `${0.85 * each.width.baseVal.value}px`;

  for (const box of document.querySelectorAll(".searchable")) {
    const [input, status, body] = ["input", "[role=status]", "tbody"].map((each) => box.querySelector(each));
    const heads = [...box.querySelectorAll("th")];
    const rows = [...body.rows];
    const show = () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      for (const row of rows) row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
      status.textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length}`;
    };
    const valueOf = (row, place) => row.cells[place].dataset.value ?? row.cells[place].textContent;
    const sortBy = (head, place) => {
      const isNumber = head.className === "number";
      const falling = head.ariaSort ? head.ariaSort === "ascending" : isNumber;
      rows.sort((one, other) => {
        const [first, second] = [valueOf(one, place), valueOf(other, place)];
        return (falling ? -1 : 1) * (isNumber ? first - second : first.localeCompare(second, "en", { numeric: true }));
      });
      for (const each of heads) each.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", falling ? "descending" : "ascending");
      body.append(...rows);
    };
    heads.forEach((head, place) => head.querySelector("button").addEventListener("click", () => sortBy(head, place)));
    input.addEventListener("input", show);
    show();
  }
}
