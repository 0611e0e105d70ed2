// Tabs, keys and the start.
const tabs = {
  now: "graph",
  all: [
    ["graph", "Graph"],
    ["fusion", "Fusion", () => data.fusion.missed.length],
    ["memory", "Memory"],
    ["kernels", "Kernels"],
    ["reports", "Reports"],
  ],
  parts: { fusion: fusionTab, memory: memoryTab, kernels: kernelsTab, reports: reportsTab },
  init() {
    byId("tabs").replaceChildren(
      ...this.all.map(([id, name, count], k) =>
        el(
          "button",
          {
            role: "tab",
            id: `to-${id}`,
            "aria-controls": `tab-${id}`,
            title: `key ${k + 1}`,
            onclick: () => this.show(id),
          },
          name,
          count && count() ? el("span", { class: "count" }, `${count()} missed`) : null,
        ),
      ),
    );
    byId("tabs").addEventListener("keydown", (e) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
      if (!step) return;
      const k = (this.all.findIndex(([id]) => id === this.now) + step + this.all.length) % this.all.length;
      this.show(this.all[k][0]);
      byId(`to-${this.now}`).focus();
    });
  },
  // Parts are made when they are first looked at: a page of 10,000 nodes opens at once.
  show(id) {
    this.now = id;
    for (const [other] of this.all) {
      byId(`tab-${other}`).classList.toggle("now", other === id);
      byId(`to-${other}`).setAttribute("aria-selected", String(other === id));
      byId(`to-${other}`).tabIndex = other === id ? 0 : -1;
    }
    const part = this.parts[id];
    if (part && !part.made) ((part.made = true), part.init());
  },
};

byId("title").textContent = data.title;
byId("facts").textContent = [
  data.target,
  `${stages[0].scope.size} → ${stages[data.planned].scope.size} nodes`,
  data.plans.length && !data.plans[0].opaque
    ? `arena ${bytesText(data.plans[0].arenas.reduce((s, a) => s + a[0], 0))}`
    : "",
]
  .filter(Boolean)
  .join(" · ");
tabs.init();
search.init();
tabs.show("graph");
graphTab.init();

document.addEventListener("keydown", (e) => {
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName);
  if (e.key === "Escape" && !typing) {
    search.run("");
    graphTab.picked = -1;
    graphTab.each((v) => v.show(-1));
    return details.nothing();
  }
  if (typing || e.ctrlKey || e.metaKey || e.altKey) return;
  if (e.key === "/") byId("search").focus();
  else if (e.key >= "1" && e.key <= "5") tabs.show(tabs.all[e.key - 1][0]);
  else if (e.key === "f") tabs.now === "memory" ? memoryTab.view?.fit() : graphTab.each((v) => v.fit());
  else if (tabs.now !== "graph") return;
  else if (e.key === "[") graphTab.step(-1);
  else if (e.key === "]") graphTab.step(1);
  else if (e.key === "n") graphTab.nextChange(1);
  else if (e.key === "p") graphTab.nextChange(-1);
  else return;
  e.preventDefault();
});
