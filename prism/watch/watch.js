"use strict";
{
  const get = (id) => document.getElementById(id);
  const counted = (count) => Number(count).toLocaleString("en");
  const isPlayed = typeof worldPlayed !== "undefined";
  const PANEL = ["agent", "post", "state", "tick", "source", "target", "chart"];
  const KEYS = ["round", ...PANEL];
  const PAUSE_OF_ROUNDS = 500;
  const PAUSE_OF_TIME = 4000;
  const MOST_PAUSE = 8000;

  // What is looked at stands in the fragment of the address, so that it can be kept and sent.
  const looked = () => new URLSearchParams(location.hash.slice(1));
  const addressOf = (changes) => {
    const now = looked();
    for (const [name, value] of Object.entries(changes)) {
      if (value === null) now.delete(name);
      else now.set(name, value);
    }
    const kept = new URLSearchParams(KEYS.filter((name) => now.has(name)).map((name) => [name, now.get(name)]));
    return `#${kept}`;
  };
  const go = (changes) => { location.hash = addressOf(changes); };
  const slide = (changes) => {
    // a bookmark follows the slider, the way back does not have to
    history.replaceState(null, "", addressOf(changes));
    show();
  };

  const ask = async (path, query) => {
    const answer = await fetch(`${path}?${new URLSearchParams(query)}`);
    const text = await answer.text();
    let data;
    try {
      data = JSON.parse(text);
    } catch {
      throw new Error(text.trim() || answer.statusText);
    }
    if (!answer.ok) throw new Error(data.problem);
    return data;
  };

  const complain = (error) => {
    get("problem").hidden = !error;
    get("problem").textContent = error ? error.message ?? String(error) : "";
  };

  // Loads a part of the page: one request at a time, and another one if it was wanted meanwhile.
  // Between two of them, it rests for as many times as long as one took, for neither a run nor the reading of its log is to be slowed down;
  // and at least for the milliseconds that the caller gives.
  const loader = (load, rest = 3) => {
    let busy = false;
    let wanted = null;
    let timer = 0;
    let due = Infinity;
    let ended = -Infinity;
    let took = 0;
    const start = async (least = 0) => {
      if (busy) {
        wanted = Math.min(least, wanted ?? least);
        return;
      }
      clearTimeout(timer);
      const isFree = isPlayed || (state.run?.state !== "running" && !isReading());
      const pause = isFree ? took : Math.max(Math.min(rest * took, MOST_PAUSE), least);
      due = Math.min(due, ended + pause);
      const left = due - performance.now();
      if (left > 0) {
        timer = setTimeout(() => start(), left);
        return;
      }
      busy = true;
      due = Infinity;
      const began = performance.now();
      try {
        await load();
      } catch (error) {
        complain(error);
      }
      ended = performance.now();
      took = ended - began;
      busy = false;
      if (wanted === null) return;
      const next = wanted;
      wanted = null;
      start(next);
    };
    return start;
  };

  // The head of the instant that the page shows, and the last news of the run, which may be ahead.
  const state = { head: null, run: null, source: null, seesTime: false, specs: new Map(), queue: Promise.resolve() };

  // What the reader has opened, scrolled and chosen in a section outlives its next version.
  const replaceContents = (place, html) => {
    const open = [...place.querySelectorAll("details")].filter((each) => each.open).map((each) => each.querySelector("summary").textContent);
    const scrolled = [...place.querySelectorAll(".tall, .scroll, .happened")].map((each) => [each.scrollLeft, each.scrollTop]);
    const chosen = document.activeElement;
    const data = place.contains(chosen) ? JSON.stringify(chosen.dataset) : "";
    place.innerHTML = html;
    for (const each of place.querySelectorAll("details")) {
      if (open.includes(each.querySelector("summary").textContent)) each.open = true;
    }
    // a chart shrinks as long as its letters can be read, then it scrolls in its box, from where agents start
    const charts = place.querySelectorAll(".scroll svg");
    for (const each of charts) each.style.minWidth = `${0.85 * each.width.baseVal.value}px`;
    [...place.querySelectorAll(".tall, .scroll, .happened")].forEach((each, number) => {
      if (scrolled[number]) [each.scrollLeft, each.scrollTop] = scrolled[number];
    });
    for (const each of scrolled.length ? [] : charts) {
      const box = each.closest(".scroll");
      const { left, width } = (each.querySelector(".start") ?? each).getBoundingClientRect();
      box.scrollLeft += left + width / 2 - box.getBoundingClientRect().left - box.clientWidth / 2;
    }
    for (const each of place.querySelectorAll(":is([data-state], [data-source], [data-agent], [data-post], [data-round])")) {
      each.setAttribute("tabindex", "0");
      each.setAttribute("role", "button");
    }
    if (data.length > 2) {
      [...place.querySelectorAll("[data-agent], [data-post], [data-state], [data-source]")].find((each) => JSON.stringify(each.dataset) === data)?.focus();
    }
  };

  const sectionOf = (holder, prefix, anchor) => {
    const id = `${prefix}-${anchor}`;
    if (get(id)) return get(id);
    const made = document.createElement("section");
    made.id = id;
    made.setAttribute("aria-labelledby", `${id}-heading`);
    made.append(document.createElement("h2"), document.createElement("p"), document.createElement("div"));
    made.firstChild.id = `${id}-heading`;
    made.children[1].className = "soft";
    return made;
  };

  const showSections = (holder, prefix, view) => {
    const shown = view.sections.map(({ anchor }) => sectionOf(holder, prefix, anchor));
    const stale = [...holder.children].filter((each) => !shown.includes(each));
    stale.forEach((each) => each.remove());
    // what is to be scrolled has to have its place
    view.sections.forEach((each, number) => {
      const section = shown[number];
      if (holder.children[number] !== section) holder.insertBefore(section, holder.children[number] ?? null);
      const [heading, explanation] = section.children;
      const body = section.lastChild;
      heading.textContent = each.heading;
      explanation.textContent = each.explanation;
      if (section.contents !== each.html) {
        section.contents = each.html;
        replaceContents(body, each.html);
        body.querySelectorAll(".figure").forEach((figure) => state.specs.delete(figure.id));
        body.querySelectorAll(".searchable").forEach(makeSearchable);
      }
    });
    state.queue = state.queue.then(() => drawAll(view.figures));
    return state.queue;
  };

  const drawAll = async (figures) => {
    for (const [id, spec] of Object.entries(figures)) {
      const text = JSON.stringify(spec);
      if (!get(id) || state.specs.get(id) === text) continue;
      state.specs.set(id, text);
      await drawFigure([id, spec]);
    }
    document.body.dataset.drawn = document.querySelectorAll(".figure svg").length;
  };

  // An agent that is run alone has turns or cycles in place of rounds.
  const unit = () => state.head?.unit ?? "round";
  const capital = (word) => word[0].toUpperCase() + word.slice(1);

  const lastRound = () => state.head?.rounds ?? null;
  const isLive = () => !looked().has("round");
  const wantedRound = () => {
    if (isLive()) return lastRound();
    const number = Number(looked().get("round"));
    return Number.isInteger(number) && number >= 0 ? number : lastRound();
  };

  const timeText = (seconds) => {
    if (seconds < 60) return `${Math.round(seconds)} s`;
    if (seconds < 3600) return `${Math.round(seconds / 60)} min`;
    return `${(seconds / 3600).toFixed(1)} h`;
  };

  const outOf = (part, whole) => (whole == null ? counted(part) : `${counted(part)} of ${counted(whole)}`);

  const stateWords = (head, run) => {
    const words = [];
    if (head.rounds !== null) words.push(`the run is at ${unit()} ${outOf(head.rounds, head.planned)}`);
    if (head.tick !== null && run.state !== "complete" && head.ticks !== 1) words.push(`tick ${outOf(head.tick, head.ticks)}`);
    const behind = Math.max((run.now ?? 0) - (head.rounds ?? 0), 0);
    if (behind) words.push(`this page is ${counted(behind)} ${unit()}${behind === 1 ? "" : "s"} behind`);
    if (run.spent) {
      words.push(`${counted(run.spent.calls)} calls, ${counted(run.spent.tokens)} tokens`);
      for (const [name, each] of Object.entries(run.spent.by_model ?? {})) words.push(`${name}: ${counted(each.calls)} calls`);
    }
    return words.map((each) => `${each} \u00b7 `).join("");
  };

  const isReading = () => state.run && state.run.size - state.run.read > 1 << 23;
  const isOver = () => ["complete", "stopped", "damaged"].includes(state.run?.state);
  const faultWords = ({ faults, read, size }) => `${faults ? counted(faults) : "no"} fault${faults === 1 ? "" : "s"} in the run${isOver() && read === size ? "" : " so far"}`;

  const showHead = (head) => {
    state.head = head;
    get("title").textContent = head.label;
    document.title = `${head.label} - prism watch`;
    const agents = head.agents === null ? "" : `${counted(head.agents)} agent${head.agents === 1 ? "" : "s"}`;
    get("about").textContent = [head.world, agents, head.seed === null ? "" : `seed ${head.seed}`].filter(Boolean).join(", ");
    get("notes").hidden = !head.notes.length;
    get("notes").querySelector("ul").replaceChildren(...head.notes.map((note) => element("li", note)));
    showRun();
    showWhere();
  };

  // What the process of the run is doing now, beside the instant that the page shows.
  const showRun = () => {
    const { head, run } = state;
    if (!run) return;
    get("reading").hidden = !isReading();
    get("read").value = run.size ? run.read / run.size : 0;
    get("read-text").textContent = `${Math.round(run.read / 1e6)} of ${Math.round(run.size / 1e6)} MB`;
    get("state").dataset.state = run.state;
    const name = element("b", run.state);
    if (!head) get("state").replaceChildren(name);
    else {
      const faults = head.faults ? buttonOf(faultWords(head), () => get("time").scrollIntoView()) : element("span", faultWords(head));
      get("state").replaceChildren(name, ` ${stateWords(head, run)}`, faults);
    }
  };

  const showWhere = () => {
    const { head } = state;
    const slider = get("slider");
    const last = lastRound();
    slider.min = head?.first ?? 0;
    slider.max = last ?? 0;
    const number = wantedRound();
    slider.value = number ?? 0;
    slider.disabled = last === null;
    get("before").disabled = number === null || number <= Number(slider.min);
    get("after").disabled = number === null || number >= Number(slider.max);
    const inPanel = { min: slider.min, max: slider.max, title: `${capital(unit())}, ${slider.min} to ${slider.max}` };
    Object.assign(get("panel-round"), number === null || document.activeElement === get("panel-round") ? inPanel : { ...inPanel, value: number });
    get("live").setAttribute("aria-pressed", String(isLive()));
    get("live").textContent = isOver() ? `Last ${unit()}` : "Live";
    const words = number === null ? `no ${unit()}s yet` : `${capital(unit())} ${counted(number)}${isLive() && !isOver() ? " (the last)" : ` of ${counted(last ?? number)}`}`;
    get("where").textContent = words;
    slider.setAttribute("aria-valuetext", words);
    slider.setAttribute("aria-label", capital(unit()));
    for (const [id, key] of [["before", "left"], ["after", "right"]]) {
      for (const each of [get(id), get(`panel-${id}`)]) {
        each.setAttribute("aria-label", `${capital(unit())} ${id}`);
        each.title = `${capital(unit())} ${id} (${key} arrow)`;
      }
      get(`panel-${id}`).disabled = get(id).disabled;
    }
  };

  const element = (kind, text, more) => Object.assign(document.createElement(kind), { textContent: text, ...more });

  const loadRound = loader(async () => {
    if (!state.run || isReading()) return;
    const { label } = state.run;
    const wanted = looked().get("round") ?? "";
    const view = await ask("/round", { round: wanted });
    if (label !== state.run?.label) return;
    complain(null);
    showHead(view.head);
    await showSections(get("at"), "at", view);
    get("at").dataset.round = String(view.round);
    if (wanted !== (looked().get("round") ?? "")) loadRound();
  });

  const loadTime = loader(async () => {
    if (!state.head || !(state.seesTime || isOver() || !get("time").children.length)) return;
    const { label } = state.run;
    const view = await ask("/time", {});
    if (label !== state.run?.label) return;
    const until = view.round == null ? "" : `Up to ${unit()} ${counted(view.round)}. `;
    get("time-note").textContent = view.due == null ? "" : `${until}The next ${unit()}s follow in ${timeText(view.due)}.`;
    await showSections(get("time"), "time", view);
    // a log that grows is read whole at times
    clearTimeout(state.unread);
    if (view.due !== null) state.unread = setTimeout(loadTime, 1000 * view.due);
  }, 1);

  // What is out of sight need not be up to date.
  new IntersectionObserver(([{ isIntersecting }]) => {
    state.seesTime = isIntersecting;
    if (isIntersecting) loadTime();
  }, { rootMargin: "25%" }).observe(get("time"));

  const buttonOf = (text, act) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = text;
    button.disabled = !act;
    if (act) button.addEventListener("click", act);
    return button;
  };

  const panelTitle = (now, number) => {
    const when = number === null ? "" : `, ${unit()} ${counted(number)}`;
    if (now.has("agent")) return `${now.get("agent")}${when}`;
    if (now.has("post")) return `Post ${now.get("post")}`;
    if (now.has("state")) return `Agents in ${now.get("state")}${when}${now.has("tick") ? `, tick ${now.get("tick")}` : ""}`;
    return `${now.get("source")} to ${now.get("target")}${when}`;
  };

  let shownPanel = "";
  const loadPanel = loader(async () => {
    const now = looked();
    const panel = get("panel");
    if (!state.head || !PANEL.some((name) => now.has(name))) {
      shownPanel = "";
      if (panel.open) panel.close();
      return;
    }
    const number = wantedRound();
    // an agent that is looked at stays as it is while a run goes on
    const isSteady = (now.has("agent") && isLive()) || now.has("post");
    const wanted = `${state.run.label} ${PANEL.map((name) => now.get(name)).join(" ")} ${isSteady ? "" : number}`;
    if (wanted === shownPanel && panel.open) return;
    const isOther = shownPanel !== "" || !panel.open;
    shownPanel = wanted;
    get("panel-title").textContent = panelTitle(now, number).slice(0, 300);
    get("panel-rounds").hidden = !now.has("agent") || number === null;
    const waiting = document.createElement("p");
    waiting.textContent = "Looking through the log\u2026";
    if (isOther) get("panel-body").replaceChildren(waiting);
    if (!panel.open) panel.showModal();
    if (isOther && !panel.contains(document.activeElement)) get("panel-title").focus();
    const query = Object.fromEntries(PANEL.filter((name) => now.has(name)).map((name) => [name, now.get(name)]));
    const path = ["agent", "post"].find((name) => now.has(name)) ?? "agents";
    try {
      const found = await ask(`/${path}`, { round: number ?? "", ...query });
      if (waiting.isConnected) get("panel-body").replaceChildren();
      await showSections(get("panel-body"), path, found);
      get("panel").scrollTop = 0;
    } catch (error) {
      waiting.textContent = error.message;
      get("panel-body").replaceChildren(waiting);
    }
    // what was focused may be gone with what was shown before
    if (panel.open && !panel.contains(document.activeElement)) get("panel-title").focus();
    panel.dataset.shown = wanted;
  });

  const nothing = Object.fromEntries(PANEL.map((name) => [name, null]));
  const chooseAt = (event) => {
    const found = event.target.closest?.("[data-agent], [data-post], [data-state], [data-source], [data-round]");
    if (!found || !found.closest("main, dialog")) return;
    const { agent, post, round, state: where, source, target } = found.dataset;
    if (round !== undefined) slide({ round });
    else if (post !== undefined) go({ ...nothing, post });
    else if (agent !== undefined) go({ ...nothing, agent });
    else {
      // states of two charts may have one name
      const chart = found.closest(".chart")?.dataset.chart || null;
      go(where !== undefined ? { ...nothing, state: where, chart } : { ...nothing, source, target, chart });
    }
    event.preventDefault();
  };

  // From a mark of a figure to what is behind it: an agent, or the agents that a bar counts.
  const openMark = ({ agent, begin, round = begin, tick, state: where, chart }) => {
    if (agent) go({ ...nothing, agent });
    else if (round === undefined) return;
    else if (where !== undefined) go({ ...nothing, round, state: where, tick: tick ?? null, chart: chart ?? null });
    else slide({ round });
  };

  const listen = () => {
    state.source?.close();
    state.source = null;
    if (document.hidden) return;
    const source = new EventSource("/events");
    state.source = source;
    source.onmessage = (event) => {
      document.body.classList.remove("lost");
      const { run, play } = JSON.parse(event.data);
      if (play) worldPlayed.show(play);
      if (!run) return;
      if (run.label !== state.run?.label) begin(run.label);
      const first = state.head === null;
      const before = state.run;
      state.run = run;
      showRun();
      if (!first && before.read === run.read && before.state === run.state && before.problem === run.problem) return;
      // a round that has ended stays as it is
      if (first || isLive() || state.head.read !== run.read) loadRound(first ? 0 : PAUSE_OF_ROUNDS).then(first ? () => { loadTime(); loadPanel(); } : undefined);
      if (!first) loadTime(PAUSE_OF_TIME);
    };
    source.onerror = () => {
      document.body.classList.add("lost");
      get("state").textContent = "prism watch does not answer: it was stopped, or this page was opened again elsewhere";
    };
  };

  // A world that is played again is another run, of which nothing is shown yet.
  const begin = (label) => {
    if (state.run) history.replaceState(null, "", "#");
    state.head = state.run = null;
    state.specs.clear();
    get("run").hidden = false;
    get("title").textContent = label;
    for (const id of ["at", "time"]) get(id).replaceChildren();
    for (const id of ["notes", "reading"]) get(id).hidden = true;
    for (const id of ["state", "about"]) get(id).textContent = "";
    complain(null);
    showWhere();
  };

  const show = () => {
    showWhere();
    if (state.head) {
      loadRound();
      loadPanel();
    }
  };

  const step = (by) => {
    const number = wantedRound();
    if (number === null) return;
    const next = Math.min(Math.max(number + by, Number(get("slider").min)), Number(get("slider").max));
    slide({ round: String(next) });
  };

  get("slider").addEventListener("input", () => slide({ round: get("slider").value }));
  get("before").addEventListener("click", () => step(-1));
  get("after").addEventListener("click", () => step(1));
  get("panel-before").addEventListener("click", () => step(-1));
  get("panel-after").addEventListener("click", () => step(1));
  get("panel-round").addEventListener("change", ({ target }) => {
    if (target.checkValidity() && target.value) slide({ round: target.value });
  });
  get("live").addEventListener("click", () => slide({ round: isLive() ? String(lastRound() ?? 0) : null }));
  get("search").addEventListener("submit", (event) => {
    event.preventDefault();
    const agent = get("words").value.trim();
    if (agent) go({ ...nothing, agent });
  });
  get("close").addEventListener("click", () => go(nothing));
  get("skip").addEventListener("click", (event) => {
    event.preventDefault();
    get("main").focus();
  });
  get("panel").addEventListener("cancel", (event) => {
    event.preventDefault();
    go(nothing);
  });
  document.addEventListener("click", chooseAt);
  document.addEventListener("mark", (event) => openMark(event.detail));
  document.addEventListener("keydown", (event) => {
    const isField = event.target.matches?.("input, textarea, select");
    if (event.altKey || event.ctrlKey || event.metaKey || get("panel").open) {
      if (event.key === "Enter" && event.target.matches?.("[role=button]")) chooseAt(event);
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (by && looked().has("agent") && !event.target.closest?.(".scroll, .tall")) step(by);
      return;
    }
    if ((event.key === "Enter" || event.key === " ") && event.target.matches?.("[role=button]")) chooseAt(event);
    else if (isField || event.target.closest?.(".scroll, .tall, .happened")) return;
    else if (event.key === "ArrowLeft") step(-1);
    else if (event.key === "ArrowRight") step(1);
    else if (event.key === "l" || event.key === "L") slide({ round: null });
    else if (isPlayed) worldPlayed.press(event.key);
  });
  window.addEventListener("hashchange", show);
  document.addEventListener("visibilitychange", listen);

  // The token was good once: it is of no use in the address any more.
  if (location.search) history.replaceState(null, "", location.pathname + location.hash);
  listen();
}
