// Search, from any page: results while typing, all of them on search.html.
// The index is a script beside the pages, so this works from a folder as well as from a server.
// All text is set as text, never as HTML.
"use strict";

(() => {
  const root = document.documentElement.dataset.content_root || "./";
  const FEW = 12;
  const ALL = 100;
  const AROUND = 80;
  const KINDS = { page: "Page", section: "Section" };

  // Loaded when first needed: no page waits for it.
  let loading = null;
  const load = () => {
    loading ||= new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = `${root}search-index.js`;
      script.onload = () => resolve(window.searchIndex.map(prepare));
      script.onerror = () => reject(new Error("search-index.js could not be loaded"));
      document.head.append(script);
    });
    return loading;
  };

  const prepare = (entry) => {
    const title = entry.title.toLowerCase();
    return {
      ...entry,
      lower: title,
      last: title.slice(title.lastIndexOf(".") + 1),
      page_lower: entry.page.toLowerCase(),
      all: `${title} ${entry.page} ${entry.text}`.toLowerCase(),
    };
  };

  // How well one word fits one entry; 0 where it does not occur.
  const fit = (entry, word) => {
    if (!entry.all.includes(word)) return 0;
    let sum = Math.min(entry.all.split(word).length - 1, 5);
    if (entry.lower === word || entry.last === word) sum += 60;
    else if (entry.last.startsWith(word)) sum += 30;
    else if (new RegExp(`(^|[^a-z])${word.replace(/[^\w]/g, "\\$&")}`).test(entry.lower)) sum += 25;
    else if (entry.lower.includes(word)) sum += 12;
    if (entry.page_lower.includes(word)) sum += 8;
    return sum;
  };

  // Guides before descriptions of the same worth, records of decisions last.
  const weight = (entry) => {
    if (entry.at.startsWith("decisions/") || entry.at.startsWith("changelog")) return 0.3;
    if (entry.at.startsWith("reference/compat")) return 0.15;
    if (entry.at.startsWith("reference/mcp")) return 0.6;
    if (entry.kind === "page") return 1.5;
    if (entry.kind === "class" || entry.kind === "exception") return 1.3;
    return entry.kind === "section" ? 1.1 : 1;
  };

  const find = (index, text) => {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    if (!words.length) return [];
    return index
      .map((entry) => {
        const fits = words.map((word) => fit(entry, word));
        const sum = fits.every(Boolean) ? fits.reduce((one, other) => one + other) : 0;
        return { entry, words, worth: sum * weight(entry) };
      })
      .filter((each) => each.worth)
      .sort((one, other) => other.worth - one.worth);
  };

  const excerpt = (entry, words) => {
    const lower = entry.text.toLowerCase();
    const at = Math.max(0, Math.min(...words.map((word) => lower.indexOf(word)).filter((each) => each >= 0), Infinity));
    const from = Number.isFinite(at) && at > AROUND ? entry.text.indexOf(" ", at - AROUND) + 1 : 0;
    const rest = entry.text.slice(from);
    const end = rest.length > 2 * AROUND ? rest.lastIndexOf(" ", 2 * AROUND) : rest.length;
    return (from ? "… " : "") + rest.slice(0, end) + (end < rest.length ? " …" : "");
  };

  // The text in a new element, with what was searched for marked.
  const marked = (tag, text, words) => {
    const element = document.createElement(tag);
    const pattern = words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|");
    for (const [at, part] of text.split(new RegExp(`(${pattern})`, "gi")).entries()) {
      if (at % 2) {
        const mark = document.createElement("mark");
        mark.textContent = part;
        element.append(mark);
      } else element.append(part);
    }
    return element;
  };

  const line = ({ entry, words }) => {
    const item = document.createElement("li");
    const link = document.createElement("a");
    const title = marked("strong", entry.title, words);
    const place = document.createElement("small");
    link.href = root + entry.at;
    place.textContent = entry.kind === "page" ? "" : `${KINDS[entry.kind] || entry.kind} · ${entry.page}`;
    if (!KINDS[entry.kind]) title.classList.add("code");
    link.append(title, place, marked("span", excerpt(entry, words), words));
    item.append(link);
    return item;
  };

  // The page with all results.
  const whole = document.getElementById("search-found");
  const count = document.getElementById("search-count");
  const query = new URLSearchParams(location.search).get("q") || "";
  const showAll = async (text) => {
    const found = find(await load(), text);
    whole.replaceChildren(...found.slice(0, ALL).map(line));
    count.textContent = text.trim() ? `${found.length} results for “${text.trim()}”` : "Type to search.";
  };

  // Results while typing, on every other page.
  const form = document.querySelector("form[role=search]");
  const field = form.querySelector("input[name=q]");
  const panel = document.createElement("div");
  const list = document.createElement("ol");
  const status = document.createElement("p");
  panel.className = "search-panel";
  panel.hidden = true;
  list.className = "search-found";
  status.setAttribute("role", "status");
  panel.append(status, list);
  document.body.append(panel);

  const close = () => { panel.hidden = true; };
  const place = () => {
    const box = field.getBoundingClientRect();
    panel.style.top = `${box.bottom + 6}px`;
    panel.style.left = `${Math.max(8, Math.min(box.left, innerWidth - panel.offsetWidth - 8))}px`;
    panel.style.maxHeight = `${innerHeight - box.bottom - 16}px`;
  };
  const show = async () => {
    const text = field.value;
    if (whole) return showAll(text);
    if (!text.trim()) return close();
    const found = find(await load(), text);
    if (text !== field.value) return undefined;
    list.replaceChildren(...found.slice(0, FEW).map(line));
    status.textContent = found.length > FEW ? `${found.length} results; Enter shows all` : `${found.length || "No"} result${found.length === 1 ? "" : "s"}`;
    panel.hidden = false;
    panel.scrollTop = 0;
    return place();
  };
  const step = (by) => {
    const stops = [field, ...(whole || list).querySelectorAll("a")];
    const at = stops.indexOf(document.activeElement) + by;
    stops[Math.min(Math.max(at, 0), stops.length - 1)].focus();
  };

  field.value = query;
  if (whole) showAll(query);
  field.addEventListener("input", show);
  field.addEventListener("focus", () => { load(); if (field.value && !whole) show(); });
  addEventListener("resize", () => { if (!panel.hidden) place(); });
  document.addEventListener("keydown", (event) => {
    const inside = event.target === field || panel.contains(event.target) || whole?.contains(event.target);
    const writing = event.target.closest?.("input, textarea, [contenteditable]");
    if (inside && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      event.preventDefault();
      step(event.key === "ArrowDown" ? 1 : -1);
    } else if (inside && event.key === "Escape") {
      field.focus();
      close();
    } else if (event.key === "/" && !writing && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      field.focus();
    }
  });
  document.addEventListener("click", (event) => {
    if (!form.contains(event.target) && !panel.contains(event.target)) close();
  });
  list.addEventListener("click", close);
})();
