function element(id) { return document.getElementById(id); }

function make(tag, text, className) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

// As in the other views: 1.234 ms.
function durationText(ns) {
  const units = [[1e9, "s"], [1e6, "ms"], [1e3, "us"]];
  const [size, unit] = units.find(([size]) => ns >= size) || [1, "ns"];
  const value = ns / size;
  const digits = unit === "ns" ? 0 : Math.max(0, 3 - Math.floor(Math.log10(value)));
  return `${value.toLocaleString("en", {maximumFractionDigits: digits})} ${unit}`;
}
// 1.234 MB.
function bytesText(bytes) {
  const units = [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"]];
  const [size, unit] = units.find(([size]) => bytes >= size) || [1, "bytes"];
  return `${(bytes / size).toLocaleString("en", {maximumSignificantDigits: 4})} ${unit}`;
}
// What the tree counts: "ns", "bytes", or events.
let treeUnit = "ns";
function timeText(value) {
  if (treeUnit === "bytes") return bytesText(value);
  return treeUnit === "ns" ? durationText(value) : `${value.toLocaleString("en")} ${treeUnit}`;
}
function changeText(value) {
  return `${value < 0 ? "-" : "+"}${timeText(Math.abs(value))}`;
}
// `what` in the plural.
function countText(count, what) {
  return `${count.toLocaleString("en")} ${count === 1 ? what.replace(/(h)es$|s$/, "$1") : what}`;
}
function shareText(part, whole) {
  return whole === 0 ? "0 %" : `${(100 * part / whole).toFixed(2)} %`;
}

// What a node is and has, in words.
class Facts {
  constructor(tree, mode) {
    this.tree = tree;
    this.isIdle = mode === "idle";
  }

  sums(node) { return this.#sumsOf(this.tree.partsOf(node)); }

  // [{part: "CPU", ns, counts: "12 samples"}, ...] of the parts that have time.
  #sumsOf(parts) {
    const sums = new Map();
    parts.forEach(({ns, count}, kind) => {
      const {part, does} = KINDS[kind];
      const sum = sums.get(part) || {part, ns: 0, by: {}};
      sum.ns += ns;
      sum.by[does] = (sum.by[does] || 0) + count;
      sums.set(part, sum);
    });
    const counts = by => Object.entries(by).filter(([, count]) => count > 0)
      .map(([does, count]) => countText(count, this.isIdle ? "parts" : does)).join(", ");
    return [...sums.values()].filter(sum => sum.ns > 0).map(
      ({part, ns, by}) => ({part: this.isIdle ? "GPU idle" : part, ns, counts: counts(by)}));
  }

  // [["Time", "1.5 ms"], ...]
  of(node, zoom) {
    const {tree} = this;
    const sums = this.sums(node);
    const self = tree.isShown[tree.kindOf(node)] ? tree.selfNs[node] : 0;
    const facts = [[treeUnit === "ns" ? "Time" : "Weight", timeText(tree.total[node])]];
    if (tree.selfBefore) {
      facts.push(["Median step", timeText(tree.total[node] - tree.growth[node])]);
      facts.push(["Change", changeText(tree.growth[node])]);
    }
    if (self > 0 && self < tree.total[node]) facts.push(["Self", timeText(self)]);
    if (sums.length > 1) sums.forEach(({part, ns}) => facts.push([part, timeText(ns)]));
    const counts = sums.map(({counts}) => counts).filter(Boolean);
    if (counts.length > 0) facts.push(["Count", counts.join(", ")]);
    facts.push(["Share", shareText(tree.total[node], tree.total[tree.top])]);
    if (zoom !== ROOT && tree.contains(zoom, node)) {
      facts.push(["Share of zoom", shareText(tree.total[node], tree.total[zoom])]);
    }
    return facts;
  }

  sortOf(node) {
    if (node === ROOT) return "";
    const kind = this.tree.kindOf(node);
    const sort = KINDS[kind].id === "other" ? "" : KINDS[kind].name;
    return [sort, this.tree.moduleOf(node)].filter(Boolean).join(" · ");
  }
}
