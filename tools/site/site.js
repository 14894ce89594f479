// What the pages do beyond standing there: search, copying, folding lists on narrow screens.
// All text is set as text, never as HTML. Without this script everything can still be read.
"use strict";

(() => {
  const root = document.body.dataset.root;
  const MOST = 20;
  const AROUND = 60;

  // Lists that stand beside the text are open; on a narrow screen they are folded.
  const fold = (selector, query) => {
    const list = document.querySelector(selector);
    if (!list) return;
    const narrow = matchMedia(query);
    const set = () => { list.open = !narrow.matches; };
    narrow.addEventListener("change", set);
    set();
  };
  fold(".menu", "(max-width: 56rem)");
  fold(".contents", "(max-width: 80rem)");

  // The page one is on may be far down the list.
  const current = document.querySelector(".menu [aria-current]");
  const menu = document.querySelector(".menu");
  if (current && current.offsetTop + current.offsetHeight > menu.clientHeight) {
    menu.scrollTop = current.offsetTop - menu.clientHeight / 2;
  }

  // What is wider than its place can be scrolled by keyboard; the rest is no stop for Tab.
  const reach = () => {
    for (const each of document.querySelectorAll("pre, .wide")) {
      if (each.scrollWidth > each.clientWidth) each.tabIndex = 0;
      else each.removeAttribute("tabindex");
    }
  };
  addEventListener("resize", reach);
  reach();

  // Copying: of a console block only what was typed.
  const typed = (block) => {
    const text = block.querySelector("code").textContent;
    if (block.dataset.language !== "console") return text;
    const lines = text.split("\n").filter((line) => line.startsWith("$ "));
    return lines.map((line) => line.slice(2)).join("\n");
  };
  if (navigator.clipboard) {
    for (const block of document.querySelectorAll(".code")) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = "Copy";
      button.addEventListener("click", async () => {
        try {
          await navigator.clipboard.writeText(typed(block));
          button.textContent = "Copied";
        } catch {
          button.textContent = "Not allowed";
        }
        setTimeout(() => { button.textContent = "Copy"; }, 1500);
      });
      block.append(button);
    }
  }

  // Searching: every word has to occur; a word in a title counts for more than one in the text.
  const form = document.querySelector("form[role=search]");
  const field = document.getElementById("site.search");
  const list = document.getElementById("site.found");
  const count = document.getElementById("site.count");
  const index = (window.searchIndex || []).map((entry) => ({
    ...entry,
    titles: `${entry.title} ${entry.page}`.toLowerCase(),
    all: `${entry.title} ${entry.page} ${entry.text}`.toLowerCase(),
  }));

  const worth = (entry, words) => {
    let sum = 0;
    for (const word of words) {
      if (!entry.all.includes(word)) return 0;
      if (entry.title.toLowerCase() === word) sum += 40;
      sum += entry.title.toLowerCase().includes(word) ? 20 : entry.titles.includes(word) ? 8 : 1;
      sum += Math.min(entry.all.split(word).length - 1, 6);
    }
    return sum;
  };

  const find = (text) => {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    if (!words.length) return [];
    return index
      .map((entry) => ({ entry, words, worth: worth(entry, words) }))
      .filter((each) => each.worth)
      .sort((one, other) => other.worth - one.worth);
  };

  const excerpt = (entry, words) => {
    const at = entry.text.toLowerCase().indexOf(words[0]);
    const from = at > AROUND ? entry.text.indexOf(" ", at - AROUND) + 1 : 0;
    const rest = entry.text.slice(from);
    const end = rest.length > 2 * AROUND ? rest.lastIndexOf(" ", 2 * AROUND) : rest.length;
    return (from ? "… " : "") + rest.slice(0, end) + (end < rest.length ? " …" : "");
  };

  const line = ({ entry, words }) => {
    const item = document.createElement("li");
    const link = document.createElement("a");
    const title = document.createElement("strong");
    const text = document.createElement("span");
    link.href = root + entry.at;
    title.textContent = entry.title === entry.page ? entry.title : `${entry.page}: ${entry.title}`;
    text.textContent = excerpt(entry, words);
    link.append(title, text);
    item.append(link);
    return item;
  };

  const close = () => { list.hidden = true; };
  const show = () => {
    const found = find(field.value);
    list.replaceChildren(...found.slice(0, MOST).map(line));
    list.hidden = !field.value.trim();
    count.textContent = list.hidden ? "" : `${found.length} found`;
    if (!found.length) {
      const none = document.createElement("li");
      none.textContent = "Nothing was found.";
      list.append(none);
    }
  };

  const step = (by) => {
    const stops = [field, ...list.querySelectorAll("a")];
    const at = stops.indexOf(document.activeElement) + by;
    stops[Math.min(Math.max(at, 0), stops.length - 1)].focus();
  };

  form.hidden = false;
  field.addEventListener("input", show);
  field.addEventListener("focus", () => { if (field.value) show(); });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const first = list.querySelector("a");
    if (first) first.click();
  });
  form.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      step(event.key === "ArrowDown" ? 1 : -1);
    } else if (event.key === "Escape") {
      field.focus();
      close();
    }
  });
  document.addEventListener("keydown", (event) => {
    const writing = event.target.closest("input, textarea, [contenteditable]");
    if (event.key === "/" && !writing && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      field.focus();
    }
  });
  document.addEventListener("click", (event) => { if (!form.contains(event.target)) close(); });
  form.addEventListener("focusout", (event) => {
    if (event.relatedTarget && !form.contains(event.relatedTarget)) close();
  });
  list.addEventListener("click", close);
})();
