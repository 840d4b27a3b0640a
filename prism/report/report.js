"use strict";
{
  const figures = JSON.parse(document.getElementById("figures").textContent);

  Promise.all(Object.entries(figures).map(([name, spec]) => drawFigure([`figure-${name}`, spec]))).then((drawn) => {
    document.body.dataset.failed = drawn.filter((each) => !each).length;
    document.body.dataset.drawn = drawn.filter(Boolean).length;
  });

  // a chart shrinks as long as its letters can be read, then it scrolls
  for (const each of document.querySelectorAll(".scroll > svg")) each.style.minWidth = `${0.85 * each.width.baseVal.value}px`;

  document.querySelectorAll(".searchable").forEach(makeSearchable);
}
