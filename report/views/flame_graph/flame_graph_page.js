const WIDE_ENOUGH = 40;  // pixels; jumps to a match zoom until it is as wide

class Page {
  constructor(data) {
    nameKinds(data.mode, data.compared !== undefined);
    treeUnit = data.unit;
    this.data = data;
    this.frames = new Frames(data);
    this.sources = new Sources(data.sources);
    this.code = new CodePanel(data.code && new KernelCode(data.code, this.sources), () => this.view.focus());
    this.hasFamilies = data.frames.family.some(family => family > 0);
    this.isCollapsed = this.hasFamilies;
    this.function = "";  // of the sandwich
    this.chosen = null;  // slices of the strip: first and last one
    this.isShown = KINDS.map(() => true);
    this.#makeTree();
    this.picture = new Picture(element("picture"), this.tree, this.search);
    this.view = element("view");
    this.panel = data.strip && new StripPanel(data.strip, {
      chosen: choice => this.chooseSlices(choice),
      pointed: (lane, bar, event) => this.#onStrip(lane, bar, event),
    });
    writeHeader(data);
    element("families").hidden = !this.hasFamilies;
    element("colors").hidden = this.tree.selfBefore === null;
    this.#listen();
    const wantsDark = window.matchMedia("(prefers-color-scheme: dark)");
    wantsDark.addEventListener("change", () => this.setDark(wantsDark.matches));
    this.setDark(wantsDark.matches);
    this.readAddress();
    this.layOut();
    this.#scrollTo(this.picture.zoom);
  }

  // ---- the shape of the tree

  #makeTree() {
    const {data, frames} = this;
    const nodes = this.chosen ? this.panel.slices.nodesOf(data.nodes, this.chosen) : data.nodes;
    this.tree = new Tree(this.isCollapsed ? collapsed(nodes, frames) : nodes, frames);
    const place = this.function === "" ? -1 : frames.names.indexOf(this.function);
    if (place < 0) this.function = "";
    else this.tree = new Tree(sandwich(this.tree, place, frames), frames, 1);
    this.search = new Search(this.tree);
    this.facts = new Facts(this.tree, data.mode);
  }

  // `functionName`: "" for the whole tree.
  setShape(isCollapsed, functionName) {
    this.isCollapsed = isCollapsed && this.hasFamilies;
    this.function = functionName;
    this.#makeTree();
    this.picture.setTree(this.tree, this.search);
    element("families").textContent = this.isCollapsed ? "All frames" : "Fewer frames";
    element("sandwich").textContent = this.function ? "Whole graph" : "Sandwich";
    this.#writeThreads();
    this.find(element("search").value);
    this.#weigh();
  }

  // Only what these slices of the strip have; null: all. The zoom stays where it can.
  chooseSlices(choice) {
    const path = this.tree.pathOf(this.picture.zoom).map(node => this.tree.frame[node]);
    this.chosen = choice;
    this.setShape(this.isCollapsed, this.function);
    this.picture.zoom = this.tree.find(path);
    this.#weigh();
    this.#writeAddress(true);
  }

  #onStrip(lane, bar, event) {
    if (!lane) return this.hideTip();
    const {panel} = this;
    writeTip(panel.nameOf(lane, bar), lane.first === null ? "" : lane.name,
             panel.factsOf(lane, bar), event.clientX, event.clientY);
  }

  switchFamilies() {
    if (!this.hasFamilies) return;
    this.setShape(!this.isCollapsed, this.function);
    this.#writeAddress(true);
  }

  switchSandwich() {
    const {selected, zoom} = this.picture;
    const node = selected !== ROOT ? selected : zoom;
    if (!this.function && node === ROOT) {
      element("details").textContent = "Select a function first: click it, or use the arrow keys.";
      return;
    }
    this.setShape(this.isCollapsed, this.function ? "" : this.tree.nameOf(node));
    this.#scrollTo(ROOT);
    this.#writeAddress(true);
  }

  #writeThreads() {
    const {tree} = this;
    const threads = this.function ? [] : [...(tree.rows[1] || [])];
    element("thread").hidden = threads.length < 2;
    element("thread").replaceChildren(...[ROOT, ...threads].map(node => {
      const option = make("option", node === ROOT ? "all threads" : tree.nameOf(node));
      option.value = node;
      return option;
    }));
  }

  // ---- the legend

  #writeLegend() {
    const {tree, picture, isShown} = this;
    writeLegend({tree, picture, isShown, switchKind: index => this.switchKind(index)});
  }

  switchKind(index) {
    this.isShown[index] = !this.isShown[index];
    this.#weigh();
    this.#writeAddress(false);
  }

  #weigh() {
    this.tree.weigh(this.isShown);
    if (this.tree.total[this.picture.zoom] === 0) this.picture.zoom = ROOT;
    this.picture.setZoom(this.picture.zoom);
    this.#writeLegend();
    writeTotals(this.facts.sums(this.tree.top));
    this.layOut();
  }

  // ---- looks

  setDark(isDark) {
    this.isDark = isDark;
    document.documentElement.dataset.theme = isDark ? "dark" : "light";
    element("theme").textContent = isDark ? "Light" : "Dark";
    this.picture.setTheme(isDark ? "dark" : "light");
    this.panel?.strip.setTheme(isDark ? "dark" : "light");
    this.#writeLegend();
    this.redraw();
  }

  switchColors() {
    if (this.tree.selfBefore === null) return;
    this.picture.showsChange = !this.picture.showsChange;
    element("colors").textContent = this.picture.showsChange ? "By kind" : "By change";
    this.redraw();
  }

  setIcicle(isIcicle) {
    this.picture.isIcicle = isIcicle;
    element("turn").textContent = isIcicle ? "Flame" : "Icicle";
    this.layOut();
    this.#scrollTo(this.picture.zoom);
  }

  // After a change of the size of the window or of the tree.
  layOut() {
    element("thread").value = this.#threadOf(this.picture.zoom);
    this.ratio = window.devicePixelRatio;
    this.height = this.view.clientHeight;
    this.panel?.strip.resize();
    element("space").style.height = `${Math.max(this.picture.fullHeight, this.view.clientHeight)}px`;
    this.picture.resize(this.view.clientWidth, this.view.clientHeight);
    this.#writeMatched();
    this.drawNow();
  }

  redraw() {
    if (this.isWaiting) return;
    this.isWaiting = true;
    window.requestAnimationFrame(() => {
      this.isWaiting = false;
      this.drawNow();
    });
  }

  drawNow() {
    this.picture.scrolled = this.view.scrollTop;
    this.picture.draw();
  }

  #scrollTo(node) {
    const {y} = this.picture.boxOf(node);
    const margin = Math.min(3 * ROW, this.view.clientHeight / 4);
    if (y < margin) this.view.scrollTop += y - margin;
    const below = y + ROW + margin - this.view.clientHeight;
    if (below > 0) this.view.scrollTop += below;
    this.drawNow();
  }

  #threadOf(node) {
    while (this.tree.depth[node] > 1) node = this.tree.parent[node];
    return node;
  }

  // ---- zoom and selection

  zoomTo(node, isStep = true) {
    this.picture.setZoom(node);
    this.layOut();
    this.showSource(node);
    this.#scrollTo(node);
    this.describe(node);
    if (isStep) this.#writeAddress(true);
  }

  select(node) {
    if (node < 0) return;
    this.hideTip();
    this.picture.selected = node;
    this.showSource(node);
    this.#scrollTo(node);
    this.describe(node);
  }

  move(key) {
    const {tree, picture} = this;
    const node = tree.contains(picture.zoom, picture.selected) || tree.contains(picture.selected, picture.zoom)
      ? picture.selected : picture.zoom;
    const outwards = picture.isIcicle ? "ArrowUp" : "ArrowDown";
    if (key === "ArrowLeft" || key === "ArrowRight") {
      this.select(this.#neighbor(node, key === "ArrowRight" ? 1 : -1));
    } else if (key === outwards) {
      this.select(tree.parent[node]);
    } else {
      this.select(this.#inwards(node));
    }
  }

  #inwards(node) {
    const {tree, picture} = this;
    const [first = -1] = tree.childrenOf(node).sort((a, b) => tree.total[b] - tree.total[a]);
    return tree.depth[node] < tree.depth[picture.zoom]
      ? tree.pathOf(picture.zoom)[tree.depth[node]] : first;
  }

  #neighbor(node, step) {
    const {tree, picture} = this;
    const {row, from, to} = tree.rangeInRow(tree.depth[node], picture.zoom);
    let at = from + firstOf(to - from, i => row[from + i] >= node) + step;
    while (at >= from && at < to && tree.total[row[at]] === 0) at += step;
    return at >= from && at < to ? row[at] : -1;
  }

  reset() {
    this.isShown.fill(true);
    element("search").value = "";
    this.chosen = null;
    this.panel?.set(null);
    this.setShape(this.isCollapsed, "");
    this.find("");
    this.picture.zoom = this.picture.selected = ROOT;
    this.#weigh();
    this.#scrollTo(ROOT);
    element("details").textContent = "";
    this.showSource(ROOT);
    this.hideTip();
    this.#writeAddress(true);
  }

  // ---- search

  find(pattern) {
    this.search.find(pattern);
    element("search").setCustomValidity(this.search.problem);
    this.#writeMatched();
    this.redraw();
  }

  #writeMatched() {
    element("matched").textContent = this.search.problem || this.#matchedText();
  }

  #matchedText() {
    const {search, tree, picture: {zoom}} = this;
    if (!search.isActive) return "";
    const all = search.nsIn(ROOT);
    const text = `Matched ${shareText(all, tree.total[ROOT])}, ${timeText(all)}, ` +
      `in ${countText(search.outermost.filter(node => tree.total[node] > 0).length, "places")}`;
    if (zoom === ROOT) return text;
    return `${text} · ${shareText(search.nsIn(zoom), tree.total[zoom])} of the zoomed frame`;
  }

  // The next match of what is shown; the zoom stays, so Enter never leaves the place.
  selectMatch(isForward) {
    const match = this.search.next(this.picture.selected, isForward);
    if (match >= 0) this.select(match);
  }

  jump(isForward) {
    const {tree, picture, search} = this;
    const match = search.next(picture.selected, isForward);
    if (match < 0) return;
    const isNarrow = tree.total[match] * picture.width < WIDE_ENOUGH * tree.total[picture.zoom];
    if (isNarrow || !tree.contains(picture.zoom, match)) {
      const wide = tree.pathOf(match).find(
        node => tree.total[match] * picture.width >= WIDE_ENOUGH * tree.total[node]);
      const fitsAll = tree.total[match] * picture.width >= WIDE_ENOUGH * tree.total[ROOT];
      this.picture.selected = match;
      this.zoomTo(fitsAll ? ROOT : wide);
    }
    this.select(match);
  }

  // ---- what a frame is

  describe(node) {
    const facts = this.facts.of(node, this.picture.zoom).map(fact => fact.join(" "));
    element("details").replaceChildren(
      make("b", this.tree.nameOf(node)),
      make("span", [...facts, this.facts.sortOf(node)].filter(Boolean).join(" · ")));
  }

  showSource(node) {
    const isKernel = this.code.show(this.tree, node);
    const {tree} = this;
    writeSource(element("source"), isKernel ? null : this.sources.of(tree.nameOf(node), tree.sourceOf(node)));
    // What is shown below takes room of the picture.
    if (this.view.clientHeight !== this.height) this.layOut();
  }

  showTip(node, x, y) {
    writeTip(this.tree.nameOf(node), this.facts.sortOf(node),
             this.facts.of(node, this.picture.zoom), x, y);
  }

  hideTip() {
    element("tip").hidden = true;
    this.picture.hovered = -1;
    this.redraw();
  }

  // One frame a line, outermost first.
  stackText(node) { return this.tree.pathOf(node).map(each => this.tree.nameOf(each)).join("\n"); }

  copy(node) {
    copyText(this.stackText(node), () => {
      element("details").textContent = `Stack of ${this.tree.nameOf(node)} copied`;
      this.view.focus();
    });
  }

  // ---- the address: #zoom=12&search=gemm&off=user,kernel&icicle=1&frames=all&function=main&steps=3-5

  #writeAddress(isStep) {
    const state = new URLSearchParams();
    if (this.picture.zoom !== ROOT) state.set("zoom", this.picture.zoom);
    if (this.search.pattern) state.set("search", this.search.pattern);
    const off = KINDS.filter((_, i) => !this.isShown[i]).map(kind => kind.id);
    if (off.length > 0) state.set("off", off.join(","));
    if (this.picture.isIcicle) state.set("icicle", "1");
    if (this.hasFamilies && !this.isCollapsed) state.set("frames", "all");
    if (this.function) state.set("function", this.function);
    if (this.chosen) state.set("steps", this.panel.text);
    if (`#${state}` === (window.location.hash || "#")) return;
    if (isStep) window.history.pushState(null, "", `#${state}`);
    else window.history.replaceState(null, "", `#${state}`);
  }

  readAddress() {
    const state = new URLSearchParams(window.location.hash.slice(1));
    const off = (state.get("off") || "").split(",");
    this.isShown = KINDS.map(kind => !off.includes(kind.id));
    element("search").value = state.get("search") || "";
    this.panel?.set(this.panel.slices?.choiceOf(state.get("steps") || "") ?? null);
    this.chosen = this.panel?.strip.choice ?? null;
    this.setShape(state.get("frames") !== "all", state.get("function") || "");
    const zoom = Number(state.get("zoom"));
    const isNode = Number.isInteger(zoom) && zoom > 0 && zoom < this.tree.size;
    this.picture.zoom = isNode ? zoom : ROOT;
    this.#weigh();
    this.setIcicle(state.has("icicle"));
  }

  // ---- events

  #listen() {
    new ResizeObserver(() => this.layOut()).observe(this.view);
    window.addEventListener("resize", () => this.layOut());
    window.addEventListener("popstate", () => this.readAddress());
    window.addEventListener("keydown", event => this.#onKey(event));
    this.view.addEventListener("scroll", () => this.redraw());
    this.#listenToMouse(element("picture"));
    element("search").addEventListener("input", event => {
      this.find(event.target.value);
      this.#writeAddress(false);
    });
    element("reset").addEventListener("click", () => this.reset());
    element("thread").addEventListener("change", event => {
      this.zoomTo(Number(event.target.value));
      this.view.focus();
    });
    element("families").addEventListener("click", () => this.switchFamilies());
    element("sandwich").addEventListener("click", () => this.switchSandwich());
    element("turn").addEventListener("click", () => this.#turn());
    element("colors").addEventListener("click", () => this.switchColors());
    element("theme").addEventListener("click", () => this.setDark(!this.isDark));
    element("help").addEventListener("click", () => element("keys").showModal());
  }

  #listenToMouse(canvas) {
    const nodeOf = event => this.picture.nodeAt(event.offsetX, event.offsetY);
    canvas.addEventListener("mousemove", event => this.#onHover(nodeOf(event), event));
    canvas.addEventListener("mouseleave", () => this.hideTip());
    canvas.addEventListener("click", event => {
      const node = nodeOf(event);
      if (node < 0) return;
      if (event.shiftKey) return this.copy(node);
      this.picture.selected = ROOT;
      this.zoomTo(node);
    });
    canvas.addEventListener("contextmenu", event => {
      const node = nodeOf(event);
      if (node < 0) return;
      event.preventDefault();
      this.copy(node);
    });
  }

  #onHover(node, event) {
    this.view.style.cursor = node < 0 ? "" : "pointer";
    if (node < 0) return this.hideTip();
    if (node !== this.picture.hovered) {
      this.picture.hovered = node;
      this.describe(node);
      this.redraw();
    }
    this.showTip(node, event.clientX, event.clientY);
  }

  #turn() {
    this.setIcicle(!this.picture.isIcicle);
    this.#writeAddress(false);
  }

  #onKey(event) {
    if (element("keys").open || event.altKey) return;
    if (event.key === "Escape") return this.#onEscape();
    if (event.key === "f" && (event.ctrlKey || event.metaKey)) return this.#focusSearch(event);
    if (event.ctrlKey || event.metaKey) return;
    if (event.target === element("search")) return this.#onSearchKey(event);
    if (event.target === element("thread") || event.target === element("chosen")) return;
    const isButton = event.target.matches("button, summary");
    if (isButton && (event.key === "Enter" || event.key === " ")) return;
    const action = this.#actions()[event.key];
    if (!action) return;
    event.preventDefault();
    action(event);
  }

  // Out of the search field too, so that keys are commands again.
  #onEscape() {
    this.view.focus();
    this.reset();
  }

  #actions() {
    const move = event => this.move(event.key);
    return {
      "ArrowLeft": move, "ArrowRight": move, "ArrowUp": move, "ArrowDown": move,
      "Enter": () => this.zoomTo(this.picture.selected),
      "Backspace": () => this.zoomTo(Math.max(ROOT, this.tree.parent[this.picture.zoom])),
      "/": event => this.#focusSearch(event),
      "n": () => this.jump(true),
      "N": () => this.jump(false),
      "c": () => this.copy(this.picture.selected),
      "d": () => this.setDark(!this.isDark),
      "f": () => this.switchFamilies(),
      "i": () => this.#turn(),
      "l": () => this.#focusCode(),
      "s": () => this.switchSandwich(),
      "v": () => this.switchColors(),
      "?": () => element("keys").showModal(),
    };
  }

  #focusSearch(event) {
    event.preventDefault();
    element("search").focus();
    element("search").select();
  }

  #focusCode() {
    if (this.code.focus()) return;
    element("details").textContent = "Select a kernel that has samples first: click it, or use the arrow keys.";
  }

  // As in a browser: Enter is the next match, Shift+Enter the one before. The field keeps the keys.
  #onSearchKey(event) {
    if (event.key === "Enter") this.selectMatch(!event.shiftKey);
  }
}

const flameGraph = new Page(JSON.parse(element("data").textContent));
element("data").remove();
