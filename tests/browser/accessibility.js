// The serious rules of an accessibility audit, over the page as it is now: returns a list of findings, each a sentence.
(() => {
  const found = [];
  const visible = (e) => { const s = getComputedStyle(e), r = e.getBoundingClientRect(); return s.visibility !== "hidden" && s.display !== "none" && r.width > 0 && r.height > 0; };
  const what = (e) => `<${e.tagName.toLowerCase()}${e.id ? " id=" + e.id : ""}${e.className && e.className.baseVal === undefined ? " class=" + e.className : ""}> ${(e.textContent || "").trim().slice(0, 40)}`;
  const named = (e) => {
    const by = e.getAttribute("aria-labelledby");
    if (by) return by.split(/\s+/).map((id) => document.getElementById(id)?.textContent || "").join(" ").trim();
    return (e.getAttribute("aria-label") || e.getAttribute("alt") || e.textContent || e.getAttribute("title") || "").trim();
  };
  if (!document.documentElement.lang) found.push("the page has no language");
  if (!document.title.trim()) found.push("the page has no title");
  if (/user-scalable\s*=\s*no|maximum-scale\s*=\s*1\b/.test(document.querySelector("meta[name=viewport]")?.content || "")) found.push("zooming is disabled");
  for (const [selector, count] of [["main", 1], ["h1", 1]]) if (document.querySelectorAll(selector).length !== count) found.push(`there must be ${count} ${selector}`);
  let level = 0;
  for (const h of document.querySelectorAll("h1,h2,h3,h4,h5,h6")) {
    const own = Number(h.tagName[1]);
    if (own > level + 1) found.push(`heading level jumps from ${level} to ${own}: ${what(h)}`);
    if (!h.textContent.trim()) found.push(`empty heading: ${what(h)}`);
    level = own;
  }
  for (const image of document.querySelectorAll("img")) if (!(image.getAttribute("alt") || "").trim()) found.push("an image has no alternative text");
  for (const image of document.querySelectorAll("[role=img],canvas,[role=group],[role=application]")) if (!named(image)) found.push(`no name: ${what(image)}`);
  for (const control of document.querySelectorAll("button,a[href],input,select,textarea,summary,progress")) {
    const label = control.labels?.length ? control.labels[0].textContent : named(control);
    if (!label) found.push(`a control has no name: ${what(control)}`);
  }
  for (const e of document.querySelectorAll("[tabindex]")) if (e.tabIndex > 0) found.push(`positive tabindex: ${what(e)}`);
  const ids = new Set();
  for (const e of document.querySelectorAll("[id]")) { if (ids.has(e.id)) found.push(`duplicate id ${e.id}`); ids.add(e.id); }
  for (const name of ["aria-labelledby", "aria-describedby"]) for (const e of document.querySelectorAll(`[${name}]`)) for (const id of e.getAttribute(name).split(/\s+/)) if (!ids.has(id)) found.push(`${name} names ${id}, which is not there`);
  for (const link of document.querySelectorAll('a[href^="#"]')) if (!ids.has(link.getAttribute("href").slice(1))) found.push(`a link goes nowhere: ${what(link)}`);
  for (const item of document.querySelectorAll("li")) if (!["UL", "OL"].includes(item.parentElement.tagName)) found.push(`li outside a list: ${what(item)}`);
  for (const table of document.querySelectorAll("table")) if (!table.querySelector("th[scope]")) found.push("a table has no headers");
  for (const e of document.querySelectorAll("body *")) {
    const s = getComputedStyle(e);
    if (/(auto|scroll)/.test(s.overflowX + s.overflowY) && (e.scrollWidth > e.clientWidth + 1 || e.scrollHeight > e.clientHeight + 1) && e.tabIndex < 0 && !e.querySelector("a[href],button,input,[tabindex='0']")) found.push(`scrolls, but not by keyboard: ${what(e)}`);
  }
  for (const e of document.querySelectorAll("button,input[type=range]")) { const r = e.getBoundingClientRect(); if (visible(e) && (r.height < 24 || r.width < 24)) found.push(`smaller than 24 px: ${what(e)}`); }
  // Contrast of every piece of text against what is behind it.
  const parse = (text) => { const n = text.match(/[\d.]+/g).map(Number); return { rgb: n.slice(0, 3), a: n.length > 3 ? n[3] : 1 }; };
  const luminance = (rgb) => rgb.map((v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }).reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (e) => { for (let at = e; at; at = at.parentElement) { const c = parse(getComputedStyle(at).backgroundColor); if (c.a > 0.99) return c.rgb; } return [255, 255, 255]; };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), seen = new Set();
  while (walker.nextNode()) {
    const e = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || seen.has(e) || ["SCRIPT", "STYLE"].includes(e.tagName) || !visible(e)) continue;
    seen.add(e);
    const s = getComputedStyle(e), colour = parse(e.namespaceURI.endsWith("svg") ? s.fill : s.color).rgb;
    const [light, dark] = [luminance(colour), luminance(behind(e))].sort((a, b) => b - a), ratio = (light + 0.05) / (dark + 0.05);
    const large = parseFloat(s.fontSize) >= 24 || (parseFloat(s.fontSize) >= 18.66 && Number(s.fontWeight) >= 700);
    if (ratio < (large ? 3 : 4.5)) found.push(`contrast ${ratio.toFixed(2)}: ${what(e)}`);
  }
  return found;
})()
