// What was recorded, above the picture.
function writeHeader({title, command, host, startMs, durationNs, losses, unfinished, compared}) {
  document.title = title ? `${title} – xpu` : "xpu flame graph";
  element("title").textContent = title || "Flame graph";
  const facts = [
    command && command !== title ? command : "", host,
    startMs === null ? "" : new Date(startMs).toISOString().replace("T", " ").slice(0, 19) + " UTC",
    durationNs === null ? "" : durationText(durationNs),
  ];
  element("recording").textContent = facts.filter(Boolean).join(" · ");
  element("compared").hidden = !compared;
  element("compared").textContent = (compared || "").trimEnd();
  element("unfinished").hidden = !unfinished;
  element("unfinished").textContent = unfinished || "";
  writeLosses(losses);
}

// `sums` as in Facts.
function writeTotals(sums) {
  const texts = sums.map(({part, ns, counts}) => `${part} ${timeText(ns)} (${counts})`);
  element("totals").textContent = texts.join(" · ") || "No stacks.";
}

function writeLosses(losses) {
  const hasLosses = losses.some(({severity}) => severity !== "note");
  element("losses").hidden = losses.length === 0;
  element("losses").classList.toggle("notes", !hasLosses);
  element("losses").querySelector("summary").textContent =
    `${hasLosses ? "Losses in" : "Notes on"} this recording: ${severitiesOf(losses).join(", ")}`;
  element("losses").querySelector("ul").replaceChildren(...losses.map(loss => {
    const item = make("li", `${loss.count.toLocaleString("en")} ${loss.what} (${loss.severity})`);
    if (loss.advice) item.append(make("span", loss.advice));
    return item;
  }));
}

// ["1 lost", "3 partial"]; of notes alone ["2"]
function severitiesOf(losses) {
  const counts = {};
  for (const {severity} of losses) counts[severity] = (counts[severity] || 0) + 1;
  if (Object.keys(counts).join() === "note") return [`${counts.note}`];
  return Object.entries(counts).map(([severity, count]) =>
    `${count} ${severity}${severity === "note" && count > 1 ? "s" : ""}`);
}
