// A table that draws only the rows in sight. Columns: {name, width, cell(row) -> text or element, num, sort(row)}.
class Table {
  constructor(columns, { onpick, classOf, label }) {
    ((this.columns = columns),
      (this.onpick = onpick),
      (this.classOf = classOf || (() => "")),
      (this.now = -1),
      (this.rows = []));
    this.height = 25;
    const template = columns.map((c) => c.width).join(" ");
    this.template = template;
    this.head = el(
      "div",
      { class: "head", style: `grid-template-columns:${template}` },
      columns.map((c, i) =>
        el(
          "span",
          { class: (c.sort ? "sorts" : "") + (c.num ? " num" : ""), onclick: () => c.sort && this.sortBy(i) },
          c.name,
        ),
      ),
    );
    this.body = el("div", { class: "rows" });
    this.el = el("div", { class: "vtable", tabindex: "0", role: "grid", "aria-label": label }, this.head, this.body);
    this.el.addEventListener("scroll", () => this.draw());
    this.el.addEventListener("keydown", (e) => {
      const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20 }[e.key];
      if (step) this.pick(Math.max(0, Math.min(this.rows.length - 1, this.now + step)), true);
      else if (e.key === "Enter" && this.now >= 0) this.pick(this.now, true);
      else return;
      e.preventDefault();
    });
    new ResizeObserver(() => this.draw(true)).observe(this.el);
  }
  set(rows) {
    ((this.rows = rows), (this.now = -1));
    if (this.by !== undefined) this.order();
    this.body.style.height = `${rows.length * this.height}px`;
    this.draw(true);
  }
  sortBy(i) {
    this.down = this.by === i ? !this.down : !!this.columns[i].num;
    this.by = i;
    this.order();
    this.now = -1;
    this.draw(true);
  }
  order() {
    const key = this.columns[this.by].sort,
      sign = this.down ? -1 : 1;
    this.rows = this.rows
      .map((r) => [key(r), r])
      .sort((a, b) => sign * (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0))
      .map((p) => p[1]);
    [...this.head.children].forEach((h, i) => {
      h.classList.toggle("by", i === this.by);
      h.textContent = this.columns[i].name + (i === this.by ? (this.down ? " ▾" : " ▴") : "");
    });
  }
  pick(i, call) {
    if (i < 0 || i >= this.rows.length) return;
    this.now = i;
    this.show(i);
    this.draw(true);
    if (call && this.onpick) this.onpick(this.rows[i]);
  }
  // Marks the row for which test holds.
  find(test) {
    this.pick(this.rows.findIndex(test), false);
  }
  show(i) {
    const top = i * this.height,
      room = this.el.clientHeight - this.head.offsetHeight - this.height;
    if (top < this.el.scrollTop) this.el.scrollTop = top;
    else if (top > this.el.scrollTop + room) this.el.scrollTop = top - room / 2;
  }
  draw(again) {
    const first = Math.max(0, Math.floor(this.el.scrollTop / this.height) - 5);
    const last = Math.min(this.rows.length, first + Math.ceil(this.el.clientHeight / this.height) + 12);
    if (!again && first === this.first && last === this.last) return;
    ((this.first = first), (this.last = last));
    const shown = [];
    for (let i = first; i < last; ++i) {
      const row = this.rows[i];
      shown.push(
        el(
          "div",
          {
            class: `row ${this.classOf(row)} ${i === this.now ? "now" : ""}`,
            role: "row",
            style: `top:${i * this.height}px;grid-template-columns:${this.template}`,
            onclick: () => this.pick(i, true),
          },
          this.columns.map((c) => {
            const cell = c.cell(row);
            return el(
              "span",
              { class: (c.num ? "num" : "") + (c.mono ? " mono" : ""), title: typeof cell === "string" ? cell : null },
              cell,
            );
          }),
        ),
      );
    }
    this.body.replaceChildren(...shown);
  }
}
