"use strict";
/* Draws a figure of a page, given as [id of its place, Vega-Lite]; returns whether that worked. */
const drawFigure = (() => {
  // What is drawn in each place, since a page may draw another figure there later.
  const shown = new WeakMap();

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

  // A page may show what it knows before the library is there.
  const library = typeof vegaEmbed === "undefined"
    ? new Promise((loaded, failed) => {
      const script = document.getElementById("library");
      script.addEventListener("load", loaded);
      script.addEventListener("error", () => failed(new Error("the library could not be loaded")));
    })
    : Promise.resolve();

  // A view that keeps its first failure: what fails while Vega computes a figure, it only logs.
  // The class to extend is nowhere in the library but in its views.
  const strictView = library.then(async () => {
    const { view } = await vegaEmbed(document.createElement("div"), {}, { ...options, mode: "vega" });
    view.finalize();
    return class extends view.constructor {
      error(...problems) {
        this.failure ??= problems[0];
        return super.error(...problems);
      }
    };
  });

  // Small figures beside each other are as many as fit, so that a phone cuts none.
  const AXIS_ROOM = 50;
  const MENU_ROOM = 40;
  const fitted = (place, spec) => {
    if (!spec.columns || !place.clientWidth) return spec;
    const fitting = Math.floor((place.clientWidth - MENU_ROOM) / (spec.spec.width + AXIS_ROOM));
    return { ...spec, columns: Math.max(1, Math.min(spec.columns, fitting)) };
  };

  // What is saved is the figure as a paper needs it: with its legend, and in light colours.
  const embed = async (place, id, whole) => {
    const spec = fitted(place, whole);
    const { legend, alone } = spec.usermeta;
    const viewClass = await strictView;
    const { view, finalize } = await vegaEmbed(place, spec, { ...options, viewClass, downloadFileName: id.replace("figure-", "") });
    if (view.failure) throw view.failure;
    place.querySelector("summary")?.setAttribute("aria-label", "Save this figure");
    shown.get(place)?.finalize();
    // a page may show more of what a mark stands for
    view.addEventListener("click", (_, item) => {
      if (item?.datum) place.dispatchEvent(new CustomEvent("mark", { bubbles: true, detail: item.datum }));
    });
    const key = legend.length ? legendOf(legend) : null;
    shown.get(place)?.key?.remove();
    if (key) place.before(key);
    shown.set(place, { finalize, key });
    view.toImageURL = async (kind, scale) => {
      const apart = await vegaEmbed(document.createElement("div"), { ...whole, ...alone }, options);
      const url = await apart.view.toImageURL(kind, scale);
      apart.finalize();
      return url;
    };
  };

  return async ([id, spec]) => {
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
})();
