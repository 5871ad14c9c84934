// Texts whose contrast with what is behind them is below 4.5 to 1.
() => {
  const parse = (text) => { const found = text.match(/[\d.]+/g).map(Number); return { rgb: found.slice(0, 3), a: found.length > 3 ? found[3] : 1 }; };
  const light = (rgb) => { const [r, g, b] = rgb.map((one) => { const s = one / 255; return s <= 0.03928 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const behind = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const color = parse(getComputedStyle(one).backgroundColor);
      if (color.a === 1) return color.rgb;
    }
    return [255, 255, 255];
  };
  const poor = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.textContent.trim() || ["SCRIPT", "STYLE", "NOSCRIPT"].includes(element.tagName)) continue;
    const box = element.getBoundingClientRect(), style = getComputedStyle(element);
    if (!box.width || style.visibility === "hidden" || element.closest(":disabled, .visually-hidden, .skip")) continue;
    const isDrawn = element.namespaceURI.endsWith("svg");
    const front = parse(isDrawn ? style.fill : style.color).rgb;
    const back = element.classList.contains("on-flag") ? parse(getComputedStyle(element.previousElementSibling).fill).rgb : behind(isDrawn ? element.closest("div") : element);
    const [low, high] = [light(front), light(back)].sort((a, b) => a - b);
    const ratio = (high + 0.05) / (low + 0.05);
    if (ratio < 4.5) poor.push(`${node.textContent.trim().slice(0, 30)}: ${ratio.toFixed(2)} (${front} on ${back})`);
  }
  return [...new Set(poor)];
}
