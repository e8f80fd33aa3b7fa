// The kinds of innermost frames that a tree has, as switches: `switchKind` is called with a kind.
function writeLegend({tree, picture, isShown, switchKind}) {
  const present = new Set(tree.kinds);
  const own = KINDS.map(() => 0);
  for (let i = 1; i < tree.size; ++i) own[tree.kindOf(i)] += tree.selfNs[i];
  const inOrder = [...new Set([PYTHON, ...KINDS.keys()])].filter(i => present.has(i));
  const label = make("span", "Innermost frame:", "kind");
  label.title = "Each button shows or hides the stacks whose innermost frame is of that kind";
  element("legend").replaceChildren(label, ...inOrder.map(index => {
    const kind = KINDS[index];
    // A switch when time is spent in the kind itself, else a mere explanation.
    const entry = make(own[index] > 0 ? "button" : "span", undefined, "kind");
    const color = make("i");
    color.style.background = picture.colorOf(index);
    entry.append(color, kind.name);
    if (own[index] === 0) return entry;
    entry.dataset.kind = kind.id;
    entry.append(make("small", timeText(own[index])));
    entry.setAttribute("aria-pressed", String(isShown[index]));
    entry.title = `Show or hide stacks whose innermost frame is of the kind "${kind.name}"`;
    entry.addEventListener("click", () => switchKind(index));
    return entry;
  }));
}
