/* Copy buttons, lists that are searched and pages that renew themselves without being loaded again, lines that are
   picked by mouse and by keyboard. Pages are complete without this file. */
"use strict";

(function () {
  function armCopyButtons(root) {
    if (!navigator.clipboard) return; // Absent on plain http unless the host is loopback; the buttons then stay hidden.
    root.querySelectorAll("button[data-copy]").forEach(function (button) {
      button.hidden = false;
    });
  }

  document.addEventListener("click", async function (event) {
    const button = event.target.closest("button[data-copy]");
    if (!button) return;
    const source = document.getElementById(button.dataset.copy);
    const label = button.querySelector("span");
    const before = label.textContent;
    try {
      await navigator.clipboard.writeText(source.textContent.trim());
      label.textContent = "Copied";
      button.classList.add("copy-done");
    } catch {
      // The browser refused; select the text, so that the user can copy it by keyboard.
      window.getSelection().selectAllChildren(source);
      label.textContent = "Press Ctrl+C";
    }
    setTimeout(function () {
      label.textContent = before;
      button.classList.remove("copy-done");
    }, 2000);
  });

  document.addEventListener("change", function (event) {
    if (event.target.matches("select[data-submit]")) event.target.form.requestSubmit();
    const all = event.target.closest("input[data-check-all]");
    if (all) {
      boxes(all.form).forEach(function (box) {
        box.checked = all.checked;
      });
    } else if (event.target.name === "paths") {
      showWhetherAll(event.target.form);
    }
  });

  function boxes(form) {
    return Array.from(form.querySelectorAll('input[type="checkbox"][name="paths"]:not(:disabled)'));
  }

  // "Pick all" is ticked while all are, and neither nor while some are.
  function showWhetherAll(form) {
    const all = form.querySelector("input[data-check-all]");
    if (!all) return;
    const picked = boxes(form).filter(function (box) { return box.checked; }).length;
    all.checked = picked > 0 && picked === boxes(form).length;
    all.indeterminate = picked > 0 && !all.checked;
  }
  document.querySelectorAll("input[data-check-all]").forEach(function (all) { showWhetherAll(all.form); });

  // A screen reader takes a swapped region for new each time, so a sentence is announced only when it has changed.
  let said = null;
  function announce(root) {
    const region = document.getElementById("live-status");
    const source = root.querySelector("[data-announce]");
    if (!region || !source) return;
    const words = source.dataset.announce;
    if (said !== null && said !== words) region.textContent = words;
    said = words;
  }
  function announceFault(words) {
    const region = document.getElementById("live-status");
    if (region && region.textContent !== words) region.textContent = words;
    said = ""; // What works again is told, though it be the sentence from before the fault.
  }

  // A search that fails leaves no list behind that answers another one. Where the server answered, its own page says
  // why; the link asks again without a script, and so leads to that page if it still fails.
  function showFailedSearch(form, request) {
    const results = document.getElementById("results");
    const shown = document.getElementById("search-failed").content.cloneNode(true);
    if (request && request.status) {
      const answered = new DOMParser().parseFromString(request.responseText, "text/html");
      const words = Array.from(answered.querySelectorAll(".error-page > p:not(.eyebrow, .row)"), function (one) { return one.textContent; });
      shown.querySelector("[data-why]").textContent = words.join(" ") || "The server answered " + request.status + ".";
    }
    shown.querySelector("[data-again]").href = form.action + "?" + new URLSearchParams(new FormData(form));
    announceFault(shown.querySelector("h2").textContent + ". " + shown.querySelector("[data-why]").textContent);
    results.replaceChildren(shown);
    renewFeeds(results);
  }
  // The feeds that the head names are those of the list that is shown.
  function renewFeeds(results) {
    document.head.querySelectorAll('link[rel="alternate"][type="application/atom+xml"]').forEach(function (link) { link.remove(); });
    results.querySelectorAll(".feeds a").forEach(function (feed) {
      const link = document.createElement("link");
      Object.assign(link, { rel: "alternate", type: feed.type, title: feed.textContent, href: feed.getAttribute("href") });
      document.head.append(link);
    });
  }
  // A live page that is not renewed says so until it is.
  function showStale(mark) {
    const words = "Not renewed since " + new Date().toLocaleTimeString() + "; it keeps trying";
    if (mark.classList.contains("stale")) return;
    mark.classList.add("stale");
    mark.lastChild.textContent = " " + words;
    announceFault(words);
  }
  ["htmx:sendError", "htmx:timeout", "htmx:responseError"].forEach(function (name) {
    document.addEventListener(name, function (event) {
      const asking = event.detail.elt;
      if (asking.id === "search") showFailedSearch(asking, event.detail.xhr);
      else asking.querySelectorAll(".live-mark").forEach(showStale);
    });
  });

  // Lines of a file: a click or Enter on a number picks one, and with Shift all up to it; the permalink leads to what is
  // picked.
  function pickedLines() {
    const match = /^#L(\d+)(?:-L(\d+))?$/.exec(window.location.hash);
    if (!match) return null;
    const ends = [Number(match[1]), Number(match[2] || match[1])];
    return [Math.min(...ends), Math.max(...ends)];
  }
  function showPicked(scroll) {
    const range = pickedLines();
    document.querySelectorAll(".code-lines > li.picked").forEach(function (line) { line.classList.remove("picked"); });
    const link = document.querySelector("a[data-permalink]");
    if (link) link.hash = range ? window.location.hash : "";
    if (!range) return;
    const list = document.querySelector(".code-lines");
    const lines = list.children;
    const before = list.start - 1;
    if (leadsElsewhere(list, range[0])) return;
    for (let number = Math.max(range[0], before + 1); number <= Math.min(range[1], before + lines.length); number++) {
      lines[number - before - 1].classList.add("picked");
    }
    const first = lines[range[0] - before - 1];
    if (scroll && first) first.scrollIntoView({ block: "center" });
  }
  // A long file is shown in parts; a line in another one, as somebody typed it or an old link has it, leads there.
  function leadsElsewhere(list, line) {
    const size = Number(list.dataset.part);
    if (!size || line < 1 || line > Number(list.dataset.count)) return false;
    const first = Math.floor((line - 1) / size) * size + 1;
    if (first === list.start) return false;
    const address = new URL(window.location.href);
    if (first > 1) address.searchParams.set("lines", first + "-" + (first + size - 1));
    else address.searchParams.delete("lines");
    window.location.replace(address);
    return true;
  }
  if (document.querySelector(".code-lines")) {
    const list = document.querySelector(".code-lines");
    const numbers = Array.from(list.querySelectorAll("a[data-line]"));
    // The line from which Shift picks: a range alone does not tell at which of its ends it began.
    let from = null;
    let pickedBy = null;
    function pickUpTo(number) {
      const range = pickedLines();
      const last = Number(number.dataset.line);
      if (!range) from = last;
      else if (from === null || from < range[0] || from > range[1]) from = range[0];
      const picked = [Math.min(from, last), Math.max(from, last)];
      window.location.hash = "#L" + picked[0] + (picked[0] < picked[1] ? "-L" + picked[1] : "");
    }
    list.addEventListener("click", function (event) {
      const number = event.target.closest("a[data-line]");
      if (!number) return;
      pickedBy = number;
      // A browser opens another window on Shift and Enter, and on Shift and a click.
      if (event.shiftKey) {
        event.preventDefault();
        pickUpTo(number);
      } else from = Number(number.dataset.line);
    });
    // All numbers are one stop of the Tab key, and arrows lead from one to the next.
    function stopAt(number) {
      const last = list.querySelector("a[data-line]:not([tabindex])");
      if (last) last.tabIndex = -1;
      number.removeAttribute("tabindex");
    }
    numbers.slice(1).forEach(function (number) { number.tabIndex = -1; });
    list.addEventListener("focusin", function (event) {
      if (event.target.matches("a[data-line]")) stopAt(event.target);
    });
    list.addEventListener("keydown", function (event) {
      const here = numbers.indexOf(event.target);
      const there = { ArrowDown: here + 1, ArrowUp: here - 1, PageDown: here + 20, PageUp: here - 20, Home: 0, End: numbers.length - 1 }[event.key];
      if (here < 0 || there === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      numbers[Math.max(0, Math.min(there, numbers.length - 1))].focus();
    });
    window.addEventListener("hashchange", function () {
      showPicked(false);
      // A browser takes the focus away from what led here.
      if (pickedBy && document.activeElement === document.body) pickedBy.focus({ preventScroll: true });
      pickedBy = null;
    });
    showPicked(true);
    const first = list.querySelector(".picked > a[data-line]");
    if (first) stopAt(first);
  }

  // A live page asks every two seconds. While the server tells it of changes, it asks then, and else four times a
  // minute, because its place in the queue changes without it.
  const live = document.querySelector("[data-events]");
  if (live && window.EventSource && window.htmx) {
    const source = new EventSource(live.dataset.events);
    let changed = true;
    let asked = 0;
    source.addEventListener("change", function () {
      changed = true;
      window.htmx.trigger("#" + live.id, "changed");
    });
    source.addEventListener("end", function () { source.close(); });
    document.addEventListener("htmx:beforeRequest", function (event) {
      if (event.detail.elt.id !== live.id) return;
      const recent = Date.now() - asked < 15000;
      if (source.readyState === EventSource.OPEN && !changed && recent) event.preventDefault();
      else { changed = false; asked = Date.now(); }
    });
  }

  document.addEventListener("htmx:load", function (event) {
    armCopyButtons(event.detail.elt);
    if (event.detail.elt.id === "results") renewFeeds(event.detail.elt);
    announce(document);
  });

  armCopyButtons(document);
  document.querySelectorAll("[data-needs-script]").forEach(function (element) {
    element.hidden = false;
  });
  announce(document);
})();
