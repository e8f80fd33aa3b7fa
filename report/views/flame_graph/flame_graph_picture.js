const ROW = 18;         // pixels
const NARROWEST = 1;    // what is narrower is drawn as dust, many frames at a time
const GAP = 1;          // between frames, when they are wide enough
const TEXT_INSET = 4;
const FONT = '12px ui-monospace, "SF Mono", "DejaVu Sans Mono", Consolas, monospace';

// [hue, saturation, lightness] by kind; colors of one kind differ a little in lightness. Text on
// them has a contrast of 4.5 at least. Kinds differ in hue and in words, not in hue alone.
const THEMES = {
  light: {
    kinds: {user: [40, 88, 70], kernel: [285, 48, 80], api: [207, 72, 73], gpu: [140, 48, 64],
            pending: [2, 78, 77], other: [225, 10, 80], python: [76, 58, 67]},
    changes: {more: [8, 90, 66], less: [215, 90, 70]},
    page: "#ffffff", text: "#17171a", dust: "#c9c9d2", edge: "#17171a",
    found: "#b8005c", foundText: "#ffffff", spread: 4,
  },
  dark: {
    kinds: {user: [32, 62, 32], kernel: [285, 34, 41], api: [210, 52, 39], gpu: [145, 50, 27],
            pending: [2, 52, 40], other: [225, 8, 35], python: [78, 45, 26]},
    changes: {more: [8, 70, 38], less: [215, 70, 42]},
    page: "#16171b", text: "#f4f4f6", dust: "#44454f", edge: "#ffffff",
    found: "#ff7ab8", foundText: "#16171b", spread: 3,
  },
};
const SHADES = 5;

function hashOf(text) {
  let hash = 0;
  for (let i = 0; i < text.length; ++i) hash = (hash * 31 + text.charCodeAt(i)) | 0;
  return hash >>> 0;
}

// Draws the tree into a canvas as large as the view, whatever the tree's size: only rows and
// frames that are in sight.
class Picture {
  constructor(canvas, tree, search) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d", {alpha: false});
    this.isIcicle = false;
    this.showsChange = tree.selfBefore !== null;
    this.width = this.height = this.scrolled = 0;
    this.setTheme("light");
    this.setTree(tree, search);
  }

  setTree(tree, search) {
    this.tree = tree;
    this.search = search;
    this.selected = ROOT;
    this.hovered = -1;
    this.shadeOf = Uint8Array.from(tree.names, name => hashOf(name) % SHADES);
    this.setZoom(ROOT);
  }

  setTheme(name) {
    this.theme = THEMES[name];
    this.fills = KINDS.map(({id}) => {
      const [hue, saturation, lightness] = this.theme.kinds[id];
      return Array.from({length: SHADES}, (_, i) =>
        `hsl(${hue} ${saturation}% ${lightness + (i - (SHADES - 1) / 2) * this.theme.spread / 2}%)`);
    });
  }
  colorOf(kind) { return this.fills[kind][SHADES >> 1]; }

  setZoom(node) {
    this.zoom = node;
    this.rowCount = this.tree.deepestIn(node) + 1;
  }

  // Of all rows, also those that are out of sight.
  get fullHeight() { return this.rowCount * ROW; }

  resize(width, height) {
    const ratio = window.devicePixelRatio || 1;
    this.width = width;
    this.height = height;
    this.canvas.width = Math.max(1, Math.round(width * ratio));
    this.canvas.height = Math.max(1, Math.round(height * ratio));
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.context.font = FONT;
    this.context.textBaseline = "middle";
    this.letterWidth = this.context.measureText("m").width;
  }

  // ---- places; y is that in the canvas

  yOf(depth) {
    if (this.isIcicle) return depth * ROW - this.scrolled;
    return Math.max(this.height, this.fullHeight) - (depth + 1) * ROW - this.scrolled;
  }
  depthAt(y) {
    const fromTop = Math.floor((y + this.scrolled) / ROW);
    if (this.isIcicle) return fromTop;
    return Math.floor((Math.max(this.height, this.fullHeight) - (y + this.scrolled)) / ROW);
  }
  boxOf(node) {
    const y = this.yOf(this.tree.depth[node]);
    if (this.tree.contains(node, this.zoom)) return {x: 0, y, width: this.width};
    const scale = this.width / this.tree.total[this.zoom];
    return {
      x: (this.tree.start[node] - this.tree.start[this.zoom]) * scale,
      y,
      width: this.tree.total[node] * scale,
    };
  }
  // -1: there is none.
  nodeAt(x, y) {
    const depth = this.depthAt(y);
    if (depth < 0 || depth >= this.rowCount || this.tree.total[this.zoom] === 0) return -1;
    if (depth <= this.tree.depth[this.zoom]) return this.#ancestorAt(depth);
    const ns = this.tree.start[this.zoom] + x / this.width * this.tree.total[this.zoom];
    return this.tree.nodeAt(depth, this.zoom, ns);
  }
  #ancestorAt(depth) {
    let node = this.zoom;
    while (this.tree.depth[node] > depth) node = this.tree.parent[node];
    return node;
  }

  // ---- drawing

  draw() {
    this.context.fillStyle = this.theme.page;
    this.context.fillRect(0, 0, this.width, this.height);
    if (this.tree.total[this.zoom] === 0) return;
    const ends = [this.depthAt(0), this.depthAt(this.height - 1)];
    const last = Math.min(Math.max(...ends), this.rowCount - 1);
    for (let depth = Math.max(0, Math.min(...ends)); depth <= last; ++depth) {
      if (depth < this.tree.depth[this.zoom]) this.#drawFrame(this.#ancestorAt(depth), true);
      else this.#drawRow(depth);
    }
    if (this.selected !== ROOT) this.#drawEdge(this.selected, 2);
    if (this.hovered > 0) this.#drawEdge(this.hovered, 1);
  }

  #drawRow(depth) {
    const {tree, zoom} = this;
    const scale = this.width / tree.total[zoom];
    const {row, from, to} = tree.rangeInRow(depth, zoom);
    // Frames without time, of kinds that are switched off, are behind no time and so left out.
    for (let i = tree.firstEndingAfter(row, from, to, tree.start[zoom]); i < to;) {
      if (tree.total[row[i]] * scale >= NARROWEST) this.#drawFrame(row[i++], false);
      else i = this.#drawDust(row, i, to, scale);
      if (i < to) i = tree.firstEndingAfter(row, i, to, tree.start[row[i]]);
    }
  }

  // The narrow frames that follow each other as one rectangle; returns the index behind them.
  #drawDust(row, from, to, scale) {
    const {tree} = this;
    const isFound = this.search.matches(row[from]);
    const {x, y} = this.boxOf(row[from]);
    const xOf = node => (tree.start[node] - tree.start[this.zoom]) * scale;
    let end = x;
    let i = from;
    while (i < to && xOf(row[i]) <= end && tree.total[row[i]] * scale < NARROWEST &&
           this.search.matches(row[i]) === isFound) {
      end = Math.max(end, xOf(row[i])) + NARROWEST;
      i = tree.firstEndingAfter(row, i + 1, to, tree.start[this.zoom] + end / scale);
    }
    this.context.fillStyle = isFound ? this.theme.found : this.theme.dust;
    this.context.fillRect(x, y, end - x, ROW - GAP);
    return i;
  }

  #drawFrame(node, isAncestor) {
    const {x, y, width} = this.boxOf(node);
    const isFound = this.search.matches(node);
    this.context.globalAlpha = isAncestor || (this.search.isActive && !isFound) ? 0.55 : 1;
    this.context.fillStyle = isFound ? this.theme.found : this.#fillOf(node);
    this.context.fillRect(x, y, width > 4 * GAP ? width - GAP : width, ROW - GAP);
    this.context.globalAlpha = 1;
    this.#drawText(this.tree.nameOf(node), x, y, width,
                   isFound ? this.theme.foundText : this.theme.text);
  }

  // Red: more time than in what it is compared with; blue: less. Full color is the whole change.
  #changeFillOf(node) {
    const {growth} = this.tree;
    const whole = Math.max(Math.abs(growth[ROOT]), 1);
    const share = Math.min(1, Math.abs(growth[node]) / whole);
    const [hue, saturation, lightness] = this.theme.changes[growth[node] > 0 ? "more" : "less"];
    const [, , same] = this.theme.kinds.other;
    return `hsl(${hue} ${saturation * Math.sqrt(share)}% ${same + (lightness - same) * share}%)`;
  }

  #fillOf(node) {
    if (this.showsChange) return this.#changeFillOf(node);
    const shade = node === ROOT ? SHADES >> 1 : this.shadeOf[this.tree.frame[node]];
    return this.fills[this.tree.kindOf(node)][shade];
  }

  #drawText(name, x, y, width, color) {
    const letters = Math.floor((width - 2 * TEXT_INSET) / this.letterWidth);
    if (letters < 3) return;
    const text = name.length <= letters ? name : name.slice(0, letters - 1) + "…";
    this.context.fillStyle = color;
    this.context.fillText(text, x + TEXT_INSET, y + ROW / 2, width - 2 * TEXT_INSET);
  }

  #drawEdge(node, thickness) {
    const {x, y, width} = this.boxOf(node);
    const {tree, zoom} = this;
    if (!tree.contains(zoom, node) && !tree.contains(node, zoom)) return;
    this.context.strokeStyle = this.theme.edge;
    this.context.lineWidth = thickness;
    this.context.strokeRect(x + thickness / 2, y + thickness / 2,
                            Math.max(1, width - GAP - thickness), ROW - GAP - thickness);
  }
}
