// Which frames match a regular expression, and how much of the time is in or below them.
class Search {
  #isMatch = null;  // by frame
  outermost = [];   // matching nodes that are below no other one, in order

  constructor(tree) {
    this.tree = tree;
    this.pattern = "";
    this.problem = "";
  }

  get isActive() { return this.#isMatch !== null; }
  matches(node) { return this.isActive && node !== ROOT && this.#isMatch[this.tree.frame[node]] === 1; }

  // As in editors: capital letters mean themselves, small ones mean both, when there are no others.
  find(pattern) {
    this.pattern = pattern;
    this.problem = "";
    this.#isMatch = null;
    this.outermost = [];
    if (pattern === "") return;
    try {
      const expression = new RegExp(pattern, /[A-Z]/.test(pattern.replace(/\\./g, "")) ? "" : "i");
      this.#isMatch = Uint8Array.from(this.tree.names, name => expression.test(name) ? 1 : 0);
      this.#findOutermost();
    } catch (error) {
      this.problem = error.message;
    }
  }

  #findOutermost() {
    for (let i = 1; i < this.tree.size;) {
      if (this.matches(i)) {
        this.outermost.push(i);
        i = this.tree.end[i];
      } else {
        ++i;
      }
    }
  }

  // The time of the matches within a node, each counted once.
  nsIn(zoom) {
    const {tree} = this;
    if (this.outermost.some(node => tree.contains(node, zoom))) return tree.total[zoom];
    return this.outermost.reduce(
      (sum, node) => tree.contains(zoom, node) ? sum + tree.total[node] : sum, 0);
  }

  // The match after (or before) a node, the longest first, round the end; -1: there is none.
  next(node, isForward) {
    const {total} = this.tree;
    const matches = this.outermost.filter(match => total[match] > 0).sort(
      (a, b) => total[b] - total[a] || a - b);
    if (matches.length === 0) return -1;
    const at = matches.indexOf(node);
    if (at < 0) return matches[isForward ? 0 : matches.length - 1];
    return matches[(at + (isForward ? 1 : -1) + matches.length) % matches.length];
  }
}
