// The stages on the left; of the chosen one the picture or the table, after the pass, before it, or both.
const graphTab = {
  stage: null,
  mode: "after",
  form: "graph",
  picked: -1,
  pickedIn: null,
  bodies: [],
  init() {
    const list = byId("stages");
    list.replaceChildren(
      ...stages.map((s, k) => {
        const c = s.count,
          same = s.before && !c.added && !c.removed && !c.changed && !c.rewired;
        return el(
          "div",
          { class: `stage ${same ? "same" : ""}`, role: "option", id: `stage-${k}`, onclick: () => graphTab.choose(k) },
          el("span", { class: "t" }, s.name),
          el("span", { class: "n" }, String(s.scope.size)),
          el(
            "span",
            { class: "d" },
            !s.before
              ? el("span", { class: "soft" }, "as given")
              : same
                ? el("span", { class: "soft" }, "unchanged")
                : [
                    c.added ? el("span", { class: "add" }, `+${c.added}`) : null,
                    c.removed ? el("span", { class: "del" }, `−${c.removed}`) : null,
                    c.changed + c.rewired
                      ? el(
                          "span",
                          { class: "chg", title: "nodes with other operands or types" },
                          `~${c.changed + c.rewired}`,
                        )
                      : null,
                  ],
          ),
        );
      }),
    );
    list.addEventListener("keydown", (e) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
      if (!step) return;
      e.preventDefault();
      graphTab.step(step);
    });
    const group = (name, choices, set) =>
      el(
        "span",
        { class: "group", role: "group", "aria-label": name },
        choices.map(([value, label, title]) =>
          el("button", { "data-value": value, "data-group": name, title, onclick: () => set(value) }, label),
        ),
      );
    const swatch = (c, what) => el("span", {}, el("i", { style: `background:var(--${c})` }), what);
    byId("graph-bar").replaceChildren(
      group(
        "form",
        [
          ["graph", "Graph"],
          ["table", "Table"],
        ],
        (v) => {
          graphTab.form = v;
          graphTab.render();
        },
      ),
      group(
        "mode",
        [
          ["after", "After"],
          ["before", "Before"],
          ["both", "Both"],
        ],
        (v) => {
          graphTab.mode = v;
          graphTab.render();
        },
      ),
      el("button", { id: "fit", title: "fit the graph (f)", onclick: () => graphTab.each((v) => v.fit()) }, "Fit"),
      el(
        "button",
        { title: "zoom in (+)", "aria-label": "zoom in", onclick: () => graphTab.each((v) => v.zoom(1.4)) },
        "+",
      ),
      el(
        "button",
        { title: "zoom out (-)", "aria-label": "zoom out", onclick: () => graphTab.each((v) => v.zoom(1 / 1.4)) },
        "−",
      ),
      el(
        "button",
        { id: "next-change", title: "next change of this pass (n)", onclick: () => graphTab.nextChange(1) },
        "Next change",
      ),
      el("span", { id: "crumbs" }),
    );
    byId("legend").replaceChildren(
      swatch("added", "added"),
      swatch("removed", "removed"),
      swatch("changed", "changed (dashed: operands)"),
      swatch("hit", "found"),
    );
    let first = stages.findIndex((s) => s.before && s.count.added);
    if (first < 0) first = 0;
    this.choose(first);
  },
  // The first place with a change is where people begin to read.
  choose(k, node) {
    ((this.stage = stages[k]),
      (this.bodies = []),
      (this.picked = node === undefined ? -1 : node),
      (this.pickedIn = null));
    const s = this.stage;
    if (this.mode !== "after" && (!s.before || node !== undefined)) this.mode = "after";
    [...byId("stages").children].forEach((c, i) => c.setAttribute("aria-selected", String(i === k)));
    byId("stages").setAttribute("aria-activedescendant", `stage-${k}`);
    byId(`stage-${k}`).scrollIntoView({ block: "nearest" });
    byId("stage-what").textContent = s.what;
    byId("stage-what").title = s.what;
    this.render();
    if (node !== undefined) this.pick(s.scope, node);
  },
  step(d) {
    const k = stages.indexOf(this.stage) + d;
    if (k >= 0 && k < stages.length) this.choose(k);
  },
  each(f) {
    for (const v of this.views || []) if (v instanceof GraphView) f(v);
  },
  // The scopes in sight, with what the pass did to their nodes.
  shown() {
    const s = this.stage,
      after = { scope: s.scope, caption: s.before ? `after ${s.name}` : s.name, status: (e) => s.status[e] };
    if (this.bodies.length) {
      const b = this.bodies[this.bodies.length - 1];
      return [{ scope: b.scope, caption: `body ${b.scope.name} of ${b.of}`, status: () => SAME }];
    }
    const before = s.before && {
      scope: s.before.scope,
      caption: `before ${s.name}`,
      status: (e) =>
        s.removed.has(e) ? REMOVED : s.status[e] === REWIRED || s.status[e] === CHANGED ? s.status[e] : SAME,
    };
    if (this.mode === "before" && before) return [before];
    return this.mode === "both" && before ? [before, after] : [after];
  },
  render() {
    for (const b of byId("graph-bar").querySelectorAll("button[data-group]")) {
      b.setAttribute("aria-pressed", String(this[b.dataset.group] === b.dataset.value));
      if (b.dataset.group === "mode")
        b.disabled = b.dataset.value !== "after" && (!this.stage.before || this.bodies.length > 0);
    }
    byId("next-change").disabled = this.bodies.length > 0 || !this.stage.before;
    byId("crumbs").replaceChildren(
      ...(this.bodies.length
        ? [
            el(
              "button",
              {
                id: "leave-body",
                onclick: () => {
                  this.bodies.pop();
                  this.picked = -1;
                  this.render();
                },
              },
              "← back",
            ),
            ` ${this.bodies.map((b) => b.of).join(" › ")}`,
          ]
        : []),
    );
    this.views = [];
    for (let i = canvases.length - 1; i >= 0; --i) if (canvases[i] instanceof GraphView) canvases.splice(i, 1);
    const shown = this.shown();
    if (this.form === "table") {
      byId("views").replaceChildren(el("div", { class: "view" }, this.table(shown).el));
    } else {
      byId("views").replaceChildren(
        ...shown.map(({ scope, caption, status }) => {
          const view = new GraphView(scope, status, (i) => this.pick(scope, i));
          view.picked = this.pickedIn === scope ? this.picked : -1;
          this.views.push(view);
          return el(
            "div",
            { class: "view" },
            el("span", { class: "caption" }, `${caption}: ${scope.size} nodes`),
            view.canvas,
            view.map,
          );
        }),
      );
    }
    search.apply();
    if (this.picked < 0) details.nothing();
  },
  // Both in one list: what was removed stands where it was.
  table(shown) {
    const rows = [];
    if (shown.length === 2) {
      const [a, b] = shown;
      let k = 0;
      const removed = (until) => {
        // up to the next that both have
        for (; k < until && (until < a.scope.size || b.scope.at(a.scope.order[k]) < 0); ++k)
          if (b.scope.at(a.scope.order[k]) < 0) rows.push([a.scope, k, REMOVED]);
      };
      for (let i = 0; i < b.scope.size; ++i) {
        const e = b.scope.order[i];
        const at = a.scope.at(e);
        if (at < 0) removed(a.scope.size);
        if (at >= k) (removed(at), (k = at + 1));
        rows.push([b.scope, i, b.status(e)]);
      }
      for (; k < a.scope.size; ++k) if (b.scope.at(a.scope.order[k]) < 0) rows.push([a.scope, k, REMOVED]);
    } else {
      for (const { scope, status } of shown)
        for (let i = 0; i < scope.size; ++i) rows.push([scope, i, status(scope.order[i])]);
    }
    const rec = ([scope, i]) => scope.rec(i);
    const table = new Table(
      [
        { name: "", width: "32px", cell: (r) => ["", "+", "~", "~", "−"][r[2]], sort: (r) => -r[2] },
        { name: "value", width: "70px", mono: true, cell: (r) => `%${r[1]}`, sort: (r) => r[1] },
        { name: "op", width: "150px", cell: (r) => rec(r).op, sort: (r) => rec(r).op },
        {
          name: "operands",
          width: "150px",
          mono: true,
          cell: (r) =>
            rec(r)
              .inputs.map(([e, n]) => `%${r[0].at(e)}${n ? `#${n}` : ""}`)
              .join(" "),
        },
        {
          name: "type",
          width: "190px",
          mono: true,
          cell: (r) => rec(r).types.join(", "),
          sort: (r) => rec(r).types.join(),
        },
        {
          name: "name or label",
          width: "220px",
          cell: (r) => leafName(rec(r)) || rec(r).label,
          sort: (r) => leafName(rec(r)) || rec(r).label,
        },
        { name: "attributes", width: "260px", mono: true, cell: (r) => rec(r).attrs },
        { name: "made by", width: "170px", cell: (r) => rec(r).pass, sort: (r) => rec(r).pass },
        { name: "source", width: "200px", cell: (r) => (rec(r).line ? `${rec(r).file}:${rec(r).line}` : "") },
      ],
      {
        label: "nodes",
        onpick: (r) => this.pick(r[0], r[1]),
        classOf: (r) => (r[2] && r[2] !== REWIRED ? `s${r[2]} ` : "") + (search.isHit(r[0], r[1]) ? "hit" : ""),
      },
    );
    table.set(rows);
    this.views.push(table);
    return table;
  },
  pick(scope, i) {
    ((this.picked = i), (this.pickedIn = scope));
    const e = scope.order[i];
    for (const [k, { scope: other }] of this.shown().entries()) {
      const view = this.views[k] || this.views[0];
      if (view instanceof Table) view.find((r) => r[0] === scope && r[1] === i);
      else view.show(other === scope ? i : this.counterpart(scope, i, other));
    }
    const entry = this.shown().find((v) => v.scope === scope);
    details.node(scope, i, entry ? entry.status(e) : SAME, (k) => this.pick(scope, k));
  },
  // Of a node in one picture, the one in the other: itself, or what stands for it there.
  counterpart(scope, i, other) {
    if (other.stage < 0 || scope.stage < 0) return -1;
    const same = other.at(scope.order[i]);
    if (same >= 0) return same;
    const [first] = other.stage < scope.stage ? replacedBy(this.stage, i) : becameOf(this.stage, i);
    return first ?? -1;
  },
  showAfter(i) {
    if (this.mode === "before") this.mode = "after";
    this.render();
    this.pick(this.stage.scope, i);
  },
  showBefore(i) {
    this.mode = this.mode === "both" ? "both" : "before";
    this.render();
    this.pick(this.stage.before.scope, i);
  },
  openBody(number, of) {
    if (tabs.now !== "graph") tabs.show("graph");
    this.bodies.push({ scope: bodyScope(number), of });
    this.picked = -1;
    this.render();
  },
  // A node of the planned program, from another tab.
  showPlanned(i) {
    tabs.show("graph");
    this.choose(data.planned, i);
  },
  nextChange(d) {
    const shown = this.shown(),
      { scope, status } = shown[shown.length - 1];
    if (this.changesOf !== scope) {
      ((this.changesOf = scope), (this.changes = []));
      for (let i = 0; i < scope.size; ++i) if (status(scope.order[i])) this.changes.push(i);
    }
    const list = this.changes,
      from = this.pickedIn === scope ? this.picked : d > 0 ? -1 : scope.size;
    const next = d > 0 ? list.find((i) => i > from) : [...list].reverse().find((i) => i < from);
    if (next !== undefined) this.pick(scope, next);
    else if (list.length) this.pick(scope, d > 0 ? list[0] : list[list.length - 1]);
  },
};

// The box at the top: matches in the graph in sight.
const search = {
  query: "",
  hits: [],
  hitSet: new Map(),
  now: -1,
  matches(scope, query) {
    const id = /^%(\d+)(#\d+)?$/.exec(query),
      out = [];
    if (id) return +id[1] < scope.size ? [+id[1]] : [];
    const known = new Map(); // by record: most nodes of a large graph are alike
    for (let i = 0; i < scope.size; ++i) {
      const r = scope.records[scope.order[i]];
      if (!known.has(r)) {
        const rec = scope.rec(i);
        known.set(r, `${rec.op}\n${rec.label}\n${leafName(rec)}\n${rec.attrs}`.toLowerCase().includes(query));
      }
      if (known.get(r)) out.push(i);
    }
    return out;
  },
  isHit(scope, i) {
    return this.hitSet.get(scope)?.has(i) || false;
  },
  // The query on what is shown now.
  apply() {
    ((this.hits = []), (this.hitSet = new Map()), (this.now = -1));
    const query = this.query.trim().toLowerCase();
    for (const { scope } of graphTab.shown()) {
      const found = query ? this.matches(scope, query) : [];
      this.hitSet.set(scope, new Set(found));
      for (const i of found) this.hits.push([scope, i]);
    }
    byId("hits").textContent = query ? `${this.hits.length}` : "";
    for (const v of graphTab.views || []) {
      if (v instanceof GraphView) ((v.hits = this.hitSet.get(v.scope) || new Set()), v.later());
      else v.draw(true);
    }
    byId("results").replaceChildren(
      ...this.hits.slice(0, 100).map(([scope, i], k) =>
        el(
          "li",
          {
            onclick: () => this.go(k),
          },
          scope.title(i),
          el("span", { class: "soft" }, `  ${scope.rec(i).types.join(", ")}`),
        ),
      ),
    );
    byId("results").hidden = !query || !this.hits.length || document.activeElement !== byId("search");
  },
  go(k) {
    if (!this.hits.length) return;
    this.now = (k + this.hits.length) % this.hits.length;
    byId("hits").textContent = `${this.now + 1} of ${this.hits.length}`;
    [...byId("results").children].forEach((li, i) => li.classList.toggle("now", i === this.now));
    byId("results").children[this.now]?.scrollIntoView({ block: "nearest" });
    graphTab.pick(...this.hits[this.now]);
  },
  run(query) {
    byId("search").value = this.query = query;
    if (tabs.now !== "graph") tabs.show("graph");
    this.apply();
  },
  init() {
    const box = byId("search");
    let timer = 0;
    box.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => this.run(box.value), 60);
    });
    box.addEventListener("keydown", (e) => {
      if (e.key === "Enter") {
        clearTimeout(timer);
        if (this.query !== box.value) this.run(box.value);
        this.go(this.now + (e.shiftKey ? -1 : 1));
      } else if (e.key === "Escape") {
        this.run("");
        box.blur();
      } else if (e.key === "ArrowDown" || e.key === "ArrowUp") {
        this.go(this.now + (e.key === "ArrowDown" ? 1 : -1));
        e.preventDefault();
      }
    });
    box.addEventListener("focus", () => (byId("results").hidden = !this.hits.length));
    box.addEventListener("blur", () => setTimeout(() => (byId("results").hidden = true), 200));
  },
};
