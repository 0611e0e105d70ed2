// What the graph and the memory picture share: a canvas with pan, zoom, theme colours and one drawing per frame.
const styles = getComputedStyle(document.documentElement);
const colours = new Map();
const colour = (name) => {
  if (!colours.has(name)) colours.set(name, styles.getPropertyValue(`--${name}`).trim());
  return colours.get(name);
};
const canvases = [];
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  colours.clear();
  for (const c of canvases) ((c.overview = null), c.later());
});

class Canvas {
  // `free`: x and y are zoomed independently.
  constructor(label, free) {
    this.free = free;
    this.canvas = el("canvas", { tabindex: "0", role: "img", "aria-label": label });
    this.ctx = this.canvas.getContext("2d");
    ((this.sx = 1), (this.sy = 1), (this.tx = 0), (this.ty = 0));
    ((this.left = 0), (this.top = 0)); // room for axes
    const c = this.canvas;
    let from = null,
      moved = 0;
    c.addEventListener("pointerdown", (e) => {
      ((from = [e.offsetX, e.offsetY]), (moved = 0));
      try {
        c.setPointerCapture(e.pointerId);
      } catch {
        /* a pointer that is gone */
      }
      c.classList.add("drag");
    });
    c.addEventListener("pointermove", (e) => {
      if (!from) return this.hover(e.offsetX, e.offsetY, e);
      ((this.tx += e.offsetX - from[0]), (this.ty += e.offsetY - from[1]));
      moved += Math.abs(e.offsetX - from[0]) + Math.abs(e.offsetY - from[1]);
      from = [e.offsetX, e.offsetY];
      this.later();
    });
    const up = (e) => {
      if (from && moved < 5) this.click(e.offsetX, e.offsetY);
      from = null;
      c.classList.remove("drag");
    };
    c.addEventListener("pointerup", up);
    c.addEventListener("pointercancel", () => (from = null));
    c.addEventListener("pointerleave", () => tip(null));
    c.addEventListener(
      "wheel",
      (e) => {
        e.preventDefault();
        if (!e.ctrlKey && e.shiftKey) {
          this.tx -= e.deltaY + e.deltaX;
          return this.later();
        }
        this.zoom(Math.exp(-(e.deltaMode === 1 ? 20 : 1) * e.deltaY * 0.0015), e.offsetX, e.offsetY);
      },
      { passive: false },
    );
    c.addEventListener("keydown", (e) => {
      const step = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] }[e.key];
      if (step) ((this.tx += step[0]), (this.ty += step[1]), this.later());
      else if (e.key === "+" || e.key === "=") this.zoom(1.3);
      else if (e.key === "-") this.zoom(1 / 1.3);
      else return;
      e.preventDefault();
    });
    new ResizeObserver(() => this.resize()).observe(c);
    canvases.push(this);
  }
  get width() {
    return this.canvas.clientWidth;
  }
  get height() {
    return this.canvas.clientHeight;
  }
  resize() {
    const ratio = window.devicePixelRatio || 1;
    ((this.canvas.width = Math.round(this.width * ratio)), (this.canvas.height = Math.round(this.height * ratio)));
    if (this.width && !this.fitted) ((this.fitted = true), this.start());
    this.draw();
  }
  start() {
    this.fit();
  }
  zoom(by, px = this.width / 2, py = this.height / 2) {
    const f = Math.max(this.least || 1e-4, Math.min(this.most || 8, this.sx * by)) / this.sx;
    ((this.tx = px - (px - this.tx) * f), (this.sx *= f));
    const g = this.free && this.flat ? 1 : f;
    ((this.ty = py - (py - this.ty) * g), (this.sy *= g));
    this.later();
  }
  later() {
    if (this.waiting || !this.canvas.isConnected) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = 0;
      this.draw();
    });
  }
  begin() {
    const ratio = window.devicePixelRatio || 1;
    this.ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.ctx.clearRect(0, 0, this.width, this.height);
    return this.ctx;
  }
  hover() {}
  click() {}
}

// A note at the pointer; null hides it.
const tip = (content, x = 0, y = 0) => {
  const t = byId("tip");
  t.hidden = !content;
  if (!content) return;
  t.textContent = content;
  t.style.left = `${Math.min(x + 14, innerWidth - t.offsetWidth - 8)}px`;
  t.style.top = `${Math.min(y + 14, innerHeight - t.offsetHeight - 8)}px`;
};
// `s` cut to a width in pixels.
const fitText = (ctx, s, width) => {
  if (ctx.measureText(s).width <= width) return s;
  let lo = 0,
    hi = s.length;
  while (lo < hi) {
    const mid = (lo + hi + 1) >> 1;
    if (ctx.measureText(s.slice(0, mid) + "…").width <= width) lo = mid;
    else hi = mid - 1;
  }
  return s.slice(0, lo) + "…";
};
// The same for paths, whose end says most.
const fitEnd = (ctx, s, width) => {
  if (ctx.measureText(s).width <= width) return s;
  let lo = 0,
    hi = s.length;
  while (lo < hi) {
    const mid = (lo + hi + 1) >> 1;
    if (ctx.measureText("…" + s.slice(s.length - mid)).width <= width) lo = mid;
    else hi = mid - 1;
  }
  return "…" + s.slice(s.length - lo);
};
