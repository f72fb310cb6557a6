// Keys of the review page. Everything here is also a button or a link.
"use strict";

(function () {
  const reason = document.getElementById("review-reason");
  const chosenText = document.getElementById("review-chosen");
  const help = document.getElementById("review-help");
  let chosen = null;

  function choose(button) {
    chosen = button;
    if (reason.value.trim()) {
      button.click();
      return;
    }
    chosenText.textContent = button.textContent.trim() + ": write a reason, then press Ctrl and Enter.";
    reason.focus();
  }

  // A finding that is ticked is waived by a button that would be hidden otherwise.
  const waiving = document.getElementById("review-waive");
  document.addEventListener("change", function (event) {
    if (waiving && event.target.name === "waive" && event.target.checked) waiving.open = true;
  });

  document.addEventListener("keydown", function (event) {
    const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName) && event.target.type !== "checkbox";
    if (typing) {
      if (event.target !== reason) return;
      if (event.key === "Escape") reason.blur();
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && chosen) {
        event.preventDefault();
        if (reason.value.trim()) chosen.click();
      }
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    if (event.key === "?" && help) {
      help.open = !help.open;
      return;
    }
    if (!/^[a-z]$/.test(event.key)) return;
    const target = document.querySelector('[data-key="' + event.key + '"]');
    if (!target) return;
    event.preventDefault();
    if (target.name === "decision") choose(target);
    else target.click();
  });
})();
