"use strict";
{
  const read = (id) => JSON.parse(document.getElementById(id).textContent);

  const options = { renderer: "svg", ast: true, actions: { export: true, source: false, compiled: false, editor: false } };

  const swatch = (colour) => {
    const picture = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const circle = document.createElementNS(picture.namespaceURI, "circle");
    for (const [name, value] of Object.entries({ cx: 5, cy: 5, r: 5, fill: colour })) circle.setAttribute(name, value);
    picture.setAttribute("aria-hidden", "true");
    picture.append(circle);
    return picture;
  };

  const legendOf = (explained) => {
    const list = document.createElement("ul");
    list.className = "key";
    list.tabIndex = 0;
    list.setAttribute("aria-label", "Legend");
    list.append(...explained.map(([name, colour]) => {
      const item = document.createElement("li");
      item.append(swatch(colour), name);
      return item;
    }));
    return list;
  };

  // A view that keeps its first failure: what fails while Vega computes a figure, it only logs.
  // The class to extend is nowhere in the library but in its views.
  const strictView = (async () => {
    const { view } = await vegaEmbed(document.createElement("div"), {}, { ...options, mode: "vega" });
    view.finalize();
    return class extends view.constructor {
      error(...problems) {
        this.failure ??= problems[0];
        return super.error(...problems);
      }
    };
  })();

  // What is saved is the figure as a paper needs it: with its legend, and in light colours.
  const embed = async (place, id, spec) => {
    const { legend, alone } = spec.usermeta;
    const viewClass = await strictView;
    const { view } = await vegaEmbed(place, spec, { ...options, viewClass, downloadFileName: id.replace("figure-", "") });
    if (view.failure) throw view.failure;
    if (legend.length) place.before(legendOf(legend));
    view.toImageURL = async (kind, scale) => {
      const apart = await vegaEmbed(document.createElement("div"), { ...spec, ...alone }, options);
      const url = await apart.view.toImageURL(kind, scale);
      apart.finalize();
      return url;
    };
  };

  const draw = async ([id, spec]) => {
    const place = document.getElementById(id);
    try {
      await embed(place, id, spec);
      return true;
    } catch (error) {
      console.error(error);
      place.textContent = `This figure could not be drawn: ${error.message ?? error}`;
      place.classList.add("failed");
      return false;
    }
  };

  Promise.all(Object.entries(read("figures")).map(draw)).then((drawn) => {
    document.body.dataset.drawn = drawn.filter(Boolean).length;
    document.body.dataset.failed = drawn.length - document.body.dataset.drawn;
  });

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
