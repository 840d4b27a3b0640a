"use strict";
/* Draws a figure of a page, given as [id of its place, Vega-Lite]; returns whether that worked. */
const drawFigure = (() => {
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const options = { renderer: "svg", ast: true, actions: { export: true, source: false, compiled: false, editor: false } };
  const LEGEND_ENTRY = 140;
  const AXIS_ROOM = 70;
  const LABEL_ROOM = 170;
  // What is drawn in each place, since a page may draw another figure there later.
  const drawn = new Map();

  // A page may show what it knows before the library is there.
  const library = typeof vegaEmbed === "undefined"
    ? new Promise((loaded, failed) => {
      const script = document.getElementById("library");
      script.addEventListener("load", loaded);
      script.addEventListener("error", () => failed(new Error("the library could not be loaded")));
    })
    : Promise.resolve();

  // a legend has as many columns as fit, and so have small figures, which are no wider than the page
  const fitted = (spec, theme, width) => {
    const config = { ...theme, legend: { ...theme.legend, columns: Math.max(1, Math.floor(width / LEGEND_ENTRY)) } };
    if (!spec.columns) return { ...spec, config };
    const small = Math.min(spec.spec.width, width - LABEL_ROOM);
    const columns = Math.max(1, Math.min(spec.columns, Math.floor(width / (small + AXIS_ROOM))));
    return { ...spec, columns, spec: { ...spec.spec, width: small }, config };
  };

  const embed = async (place, whole) => {
    const name = place.id.replace("figure-", "");
    const spec = fitted(whole, prefersDark.matches ? THEMES.dark : THEMES.light, place.clientWidth);
    await library;
    const { view, finalize } = await vegaEmbed(place, spec, { ...options, downloadFileName: name });
    drawn.get(place.id)?.finalize?.();
    drawn.set(place.id, { spec: whole, finalize });
    place.querySelector("summary")?.setAttribute("aria-label", "Save this figure");
    // a page may show more of what a mark stands for
    view.addEventListener("click", (_, item) => {
      if (item?.datum) place.dispatchEvent(new CustomEvent("mark", { bubbles: true, detail: item.datum }));
    });
    // a file is for paper
    view.toImageURL = async (kind, scale) => {
      const size = spec.width === "container" ? { width: 760, autosize: "pad" } : {};
      const apart = await vegaEmbed(document.createElement("div"), { ...spec, ...size, config: THEMES.light }, options);
      return apart.view.toImageURL(kind, scale).finally(() => apart.finalize());
    };
  };

  const draw = async ([id, spec]) => {
    const place = document.getElementById(id);
    try {
      await embed(place, spec);
      return true;
    } catch (error) {
      console.error(error);
      place.textContent = `This figure could not be drawn: ${error.message ?? error}`;
      place.classList.add("failed");
      return false;
    }
  };

  prefersDark.addEventListener("change", () => {
    for (const [id, { spec }] of drawn) if (document.getElementById(id)) draw([id, spec]);
  });
  return draw;
})();

/* Lets readers search a table by words, and sort it by its headings. */
const makeSearchable = (box) => {
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
};
