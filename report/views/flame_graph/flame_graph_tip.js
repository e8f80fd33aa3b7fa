// What the mouse is on, beside it. `facts`: [["Time", "1.5 ms"], ...]
function writeTip(name, sort, facts, x, y) {
  const tip = element("tip");
  const table = make("table");
  for (const [fact, value] of facts) {
    const row = make("tr");
    row.append(make("th", fact), make("td", value));
    table.append(row);
  }
  tip.replaceChildren(make("b", name), make("div", sort), table);
  tip.hidden = false;
  const {width, height} = tip.getBoundingClientRect();
  const left = Math.min(x + 14, window.innerWidth - width - 6);
  const top = y + 18 + height < window.innerHeight ? y + 18 : y - height - 10;
  tip.style.left = `${Math.max(6, left)}px`;
  tip.style.top = `${Math.max(6, top)}px`;
}

// Also where the browser gives no permission for the clipboard.
function copyText(text, done) {
  navigator.clipboard.writeText(text).then(done, () => {
    const area = make("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
    done();
  });
}
