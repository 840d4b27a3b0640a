"use strict";
{
  const { figures, themes } = JSON.parse(document.getElementById("figures").textContent);
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const options = { renderer: "svg", ast: true, actions: { export: true, source: false, compiled: false, editor: false } };
  const LEGEND_ENTRY = 140;
  const AXIS_ROOM = 70;
  const LABEL_ROOM = 170;

  // a legend has as many columns as fit, and so have small figures, which are no wider than the page
  const fitted = (spec, theme, width) => {
    const config = { ...theme, legend: { ...theme.legend, columns: Math.max(1, Math.floor(width / LEGEND_ENTRY)) } };
    if (!spec.columns) return { ...spec, config };
    const small = Math.min(spec.spec.width, width - LABEL_ROOM);
    const columns = Math.max(1, Math.min(spec.columns, Math.floor(width / (small + AXIS_ROOM))));
    return { ...spec, columns, spec: { ...spec.spec, width: small }, config };
  };

  const draw = async (place) => {
    const name = place.id.replace("figure-", "");
    const theme = prefersDark.matches ? themes.dark : themes.light;
    try {
      const spec = fitted(figures[name], theme, place.clientWidth);
      const { view } = await vegaEmbed(place, spec, { ...options, downloadFileName: name });
      place.querySelector("summary")?.setAttribute("aria-label", "Save this figure");
      // a file is for paper
      view.toImageURL = async (kind, scale) => {
        const size = spec.width === "container" ? { width: 760, autosize: "pad" } : {};
        const apart = await vegaEmbed(document.createElement("div"), { ...spec, ...size, config: themes.light }, options);
        return apart.view.toImageURL(kind, scale).finally(() => apart.finalize());
      };
      return true;
    } catch (error) {
      console.error(error);
      place.textContent = `This figure could not be drawn: ${error.message ?? error}`;
      place.classList.add("failed");
      return false;
    }
  };

  const drawAll = async () => {
    const drawn = await Promise.all([...document.querySelectorAll(".figure")].map(draw));
    document.body.dataset.failed = drawn.filter((each) => !each).length;
    document.body.dataset.drawn = drawn.filter(Boolean).length;
  };
  drawAll();
  prefersDark.addEventListener("change", drawAll);

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
