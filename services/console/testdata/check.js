// check looks at a page as somebody would who does not use a mouse, or does not see it, or sees little of it. It answers what it
// finds wrong, each in a line.
(() => {
  const found = [];
  const complain = (what, element) => found.push(`${what}: ${element.tagName.toLowerCase()}${element.id ? '#' + element.id : ''}${element.getAttribute('class') ? '.' + element.getAttribute('class').trim().replace(/\s+/g, '.') : ''} "${(element.textContent || '').trim().slice(0, 40)}"`);
  const shown = (element) => element.checkVisibility({ opacityProperty: true, visibilityProperty: true }) && element.getClientRects().length > 0;

  // Names: of every control, every landmark that there is twice, every picture.
  const nameOf = (element) => {
    const by = (element.getAttribute('aria-labelledby') || '').split(/\s+/).filter(Boolean).map((id) => document.getElementById(id)?.textContent || '').join(' ');
    const label = element.labels?.length ? [...element.labels].map((l) => l.textContent).join(' ') : '';
    return (by || element.getAttribute('aria-label') || label || element.textContent || element.getAttribute('title') || '').trim();
  };
  for (const element of document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex="0"], meter, progress, dialog, [role="img"], [role="region"], [role="group"], nav, section')) {
    if (shown(element) && !nameOf(element)) complain('without a name', element);
  }
  for (const wanted of ['main', 'header', 'nav']) if (document.querySelectorAll(wanted === 'header' ? 'body > header' : wanted).length !== 1) found.push(`not exactly one ${wanted}`);
  if ([...document.querySelectorAll('h1')].filter(shown).length !== 1) found.push('not exactly one h1');
  if (!document.documentElement.lang) found.push('no language');
  const ids = [...document.querySelectorAll('[id]')].map((e) => e.id);
  for (const id of new Set(ids.filter((id, i) => ids.indexOf(id) !== i))) found.push(`id given twice: ${id}`);
  for (const reference of ['aria-labelledby', 'aria-describedby', 'for']) {
    for (const element of document.querySelectorAll(`[${reference}]`)) {
      for (const id of element.getAttribute(reference).split(/\s+/)) if (!document.getElementById(id)) complain(`${reference} names nothing (${id})`, element);
    }
  }
  for (const table of document.querySelectorAll('table')) if (shown(table) && !table.querySelector('th')) complain('a table without headings', table);

  // Contrast: of every text, 4.5 to 1, or 3 to 1 where it is large.
  const colour = (text) => {
    let m = /^rgba?\(([\d.]+), ([\d.]+), ([\d.]+)(?:, ([\d.]+))?\)$/.exec(text);
    if (m) return [+m[1], +m[2], +m[3], m[4] === undefined ? 1 : +m[4]];
    m = /^color\(srgb ([\d.e-]+) ([\d.e-]+) ([\d.e-]+)(?: \/ ([\d.e-]+))?\)$/.exec(text);
    if (m) return [m[1] * 255, m[2] * 255, m[3] * 255, m[4] === undefined ? 1 : +m[4]];
    throw new Error('colour ' + text);
  };
  const over = (top, bottom, alpha = top[3]) => [0, 1, 2].map((i) => top[i] * alpha + bottom[i] * (1 - alpha)).concat(1);
  const backgroundOf = (element) => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) {
      if (e instanceof SVGElement) {
        const rect = e.tagName === 'g' ? e.querySelector(':scope > rect') : null;
        if (rect && getComputedStyle(rect).fill !== 'none') layers.push(colour(getComputedStyle(rect).fill));
      } else layers.push(colour(getComputedStyle(e).backgroundColor));
      if (layers.length && layers.at(-1)[3] === 1) break;
    }
    return layers.reverse().reduce((below, layer) => over(layer, below), colour(getComputedStyle(document.documentElement).backgroundColor));
  };
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.data.trim() || !shown(element) || element.closest('.visually-hidden, .stale, option, noscript, :disabled')) continue;
    const style = getComputedStyle(element);
    const svg = element instanceof SVGElement;
    const behind = backgroundOf(element);
    let opacity = 1;
    for (let e = element; e; e = e.parentElement) opacity *= +getComputedStyle(e).opacity;
    const ink = colour(svg ? style.fill : style.color);
    const seen = over(ink, behind, ink[3] * opacity);
    const [a, b] = [light(seen), light(behind)].sort((x, y) => y - x);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || size >= 18.66 && +style.fontWeight >= 700;
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < (large ? 3 : 4.5)) complain(`contrast ${ratio.toFixed(2)}`, element);
  }

  // Nothing is wider than the page.
  const page = document.documentElement;
  if (page.scrollWidth > page.clientWidth) {
    const wide = [...document.body.querySelectorAll('*')].find((e) => e.getBoundingClientRect().right > page.clientWidth + 1 && !e.closest('.scroll, .tabs'));
    found.push(`wider than the page: ${page.scrollWidth} > ${page.clientWidth}${wide ? `, ${wide.tagName}.${wide.getAttribute('class')}` : ''}`);
  }
  return found;
})()
