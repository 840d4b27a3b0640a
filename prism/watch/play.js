"use strict";
/* The controls of a world that is played; watch.js tells it what the server says. */
const worldPlayed = (() => {
  const get = (id) => document.getElementById(id);
  const SECONDS = [2, 1, 0.5, 0.2, 0.1, 0.03, 0];
  const OVER = ["complete", "failed", "stopped"];
  const state = { play: null, number: null, fields: new Map(), isFilled: false };

  const order = async (what) => {
    const answer = await fetch("/do", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(what) });
    const said = await answer.json();
    if (!answer.ok) throw new Error(said.problem);
    return said;
  };

  const showFault = (fault) => {
    const place = get("play-fault");
    place.hidden = !fault;
    place.replaceChildren(...(fault ? [fault.text, ...fault.notes] : []).map((text, number) => {
      const line = document.createElement(number ? "div" : "b");
      line.textContent = text;
      return line;
    }));
  };
  const tell = (what) => order(what).catch((error) => showFault({ text: error.message, notes: [] }));

  const isOver = () => OVER.includes(state.play?.state);
  const isBegun = () => (state.play?.round ?? 0) > 0;

  // Fields

  const asText = (input) => (input.type === "checkbox" ? String(input.checked) : input.value.trim());

  const inputOf = (about) => {
    if (about.options) {
      const select = document.createElement("select");
      select.append(...about.options.map((each) => new Option(String(each), String(each))));
      return select;
    }
    const input = document.createElement("input");
    if (about.type === "bool") input.type = "checkbox";
    if (about.type === "int" || about.type === "float") {
      input.type = "number";
      input.step = about.type === "int" ? "1" : "any";
      if (about.least != null) input.min = about.least;
      if (about.most != null) input.max = about.most;
    }
    return input;
  };

  const sliderOf = (about, input) => {
    if (input.type !== "number" || about.least == null || about.most == null) return null;
    const slider = document.createElement("input");
    slider.type = "range";
    slider.min = about.least;
    slider.max = about.most;
    slider.step = about.type === "int" ? 1 : (about.most - about.least) / 200;
    slider.setAttribute("aria-label", `${about.name}, slider`);
    slider.value = input.value;
    slider.addEventListener("input", () => { input.value = slider.value; });
    slider.addEventListener("change", () => input.dispatchEvent(new Event("change")));
    input.addEventListener("input", () => { slider.value = input.value; });
    return slider;
  };

  const typeWords = (about) => {
    const bounds = [about.least != null ? `at least ${about.least}` : "", about.most != null ? `at most ${about.most}` : ""];
    const usual = about.default === undefined ? "" : `${about.default} by default`;
    return [about.type, ...bounds, usual, about.help].filter(Boolean).join(", ");
  };

  const fill = (input, value) => {
    if (input.type === "checkbox") input.checked = String(value) === "true";
    else input.value = String(value);
  };

  const fieldOf = (about) => {
    const field = document.createElement("div");
    const label = document.createElement("label");
    const input = inputOf(about);
    input.id = `play-field-${about.name}`;
    label.htmlFor = input.id;
    label.textContent = about.name;
    const words = document.createElement("small");
    words.id = `${input.id}-words`;
    words.textContent = typeWords(about);
    input.setAttribute("aria-describedby", words.id);
    if (about.value != null) fill(input, about.value);
    const slider = sliderOf(about, input);
    const both = document.createElement("div");
    both.className = "both";
    both.append(...(slider ? [slider, input] : [input]));
    field.append(label, both, words);
    state.fields.set(about.name, { input, about });
    input.addEventListener("change", () => changed(about.name));
    return field;
  };

  const OF_THE_RUN = [
    { name: "agents", type: "int", least: 1, help: "number of agents; needs Reset" },
    { name: "rounds", type: "int", least: 1, help: "number of rounds; needs Reset" },
    { name: "seed", type: "int", help: "needs Reset" },
  ];
  const isOfTheRun = (name) => OF_THE_RUN.some((each) => each.name === name);

  const makeForm = (about) => {
    const focused = document.activeElement?.id;
    const own = OF_THE_RUN.filter(({ name }) => about[name] != null).map((each) => ({ ...each, value: about[each.name] }));
    const parameters = about.parameters.map((each) => ({ ...each, value: about.values[each.name] }));
    const isFirst = !state.fields.size;
    state.fields.clear();
    get("play-form").replaceChildren(...[...own, ...parameters].map(fieldOf));
    if (focused) get(focused)?.focus();
    get("play-doc").textContent = about.doc.split("\n\n")[0];
    if (isFirst && about.parameters.length > 16) get("play-parameters").open = false;
    const treatments = get("play-treatments");
    treatments.hidden = !about.treatments.length;
    treatments.querySelectorAll("button").forEach((each) => each.remove());
    treatments.append(...about.treatments.map(({ treatment, doc }) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = treatment;
      button.title = doc;
      button.addEventListener("click", () => tell({ do: "treat", name: treatment }));
      return button;
    }));
    get("play-folder").value ||= `runs/${about.world.toLowerCase()}`;
  };

  const start = () => {
    const given = { do: "start", parameters: {} };
    for (const [name, { input, about }] of state.fields) {
      const text = asText(input);
      if (text === "") continue;
      if (isOfTheRun(name)) given[name] = Number(text);
      else if (text !== String(about.default)) given.parameters[name] = text;
    }
    return tell(given);
  };

  const changed = (name) => {
    if (!isBegun()) start();
    else if (!isOver() && !isOfTheRun(name)) tell({ do: "set", parameters: { [name]: asText(state.fields.get(name).input) } });
  };

  // What the server says

  const showEstimate = (estimate) => {
    const place = get("play-estimate");
    place.hidden = !estimate;
    if (!estimate) return;
    const count = (number) => Number(number).toLocaleString("en");
    const parts = Object.entries(estimate.models).map(([name, each]) => {
      const money = each.money == null ? "at a price that is not known" : `for about ${each.money.toFixed(2)}`;
      return `${name}: about ${count(each.calls)} calls, ${count(each.input_tokens)} tokens read and ${count(each.output_tokens)} written, ${money}`;
    });
    place.textContent = `The whole run asks a model. ${parts.join("; ")}. Nothing is asked before you play or step.`;
  };

  const wordsOf = (play) => {
    const at = play.round == null || play.state === "complete" ? "" : `, round ${play.round}${play.tick ? `, tick ${play.tick}` : ""}`;
    const more = [play.refused && `Refused: ${play.refused}`, play.applied && `${play.applied} holds in round ${play.from}`].filter(Boolean);
    return [`${play.state}${at}`, ...more].join(". ");
  };

  const show = (play) => {
    state.play = play;
    if (play.number !== state.number) {
      state.number = play.number;
      state.isFilled = false;
      get("play-kept").textContent = "";
    }
    if (play.about && !state.isFilled) {
      state.isFilled = true;
      makeForm(play.about);
      if (!isOver()) tell({ do: "speed", seconds: SECONDS[get("play-speed").value] });
    }
    get("play-go").textContent = play.state === "playing" ? "Pause" : "Play";
    get("play-state").textContent = wordsOf(play);
    for (const id of ["play-go", "play-tick", "play-round"]) get(id).disabled = isOver() || play.state === "preparing";
    get("play-stop").disabled = isOver();
    get("play-treatments").querySelectorAll("button").forEach((each) => { each.disabled = isOver(); });
    showFault(play.fault);
    showEstimate(play.estimate);
    get("play-command").textContent = play.command ?? "";
    document.body.dataset.played = `${play.state} ${play.round ?? ""} ${play.tick ?? ""}`;
  };

  get("play-go").addEventListener("click", () => tell({ do: state.play?.state === "playing" ? "pause" : "play" }));
  get("play-tick").addEventListener("click", () => tell({ do: "tick" }));
  get("play-round").addEventListener("click", () => tell({ do: "round" }));
  get("play-stop").addEventListener("click", () => tell({ do: "stop" }));
  get("play-reset").addEventListener("click", start);
  get("play-speed").addEventListener("change", () => tell({ do: "speed", seconds: SECONDS[get("play-speed").value] }));
  get("play-form").addEventListener("submit", (event) => event.preventDefault());
  get("play-keep").addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      const { kept } = await order({ do: "keep", folder: get("play-folder").value });
      get("play-kept").textContent = `Kept in ${kept}: prism resume, replay and compare take it.`;
    } catch (error) {
      get("play-kept").textContent = error.message;
    }
  });

  const BUTTONS = { p: "play-go", t: "play-tick", r: "play-round" };
  return { show, press: (key) => get(BUTTONS[key.toLowerCase()])?.click() };
})();
