/* Copy buttons, and a spoken line when a live page changes. Pages are complete without this file. */
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

  // Lines of a file: a click picks one, and one with Shift all up to it; the permalink leads to what is picked.
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
    document.addEventListener("click", function (event) {
      const number = event.target.closest("a[data-line]");
      const range = pickedLines();
      if (!number || !event.shiftKey || !range) return;
      event.preventDefault();
      const last = Number(number.dataset.line);
      window.location.hash = "#L" + Math.min(range[0], last) + "-L" + Math.max(range[0], last);
    });
    window.addEventListener("hashchange", function () { showPicked(false); });
    showPicked(true);
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
    announce(document);
  });

  armCopyButtons(document);
  document.querySelectorAll("[data-needs-script]").forEach(function (element) {
    element.hidden = false;
  });
  announce(document);
})();
