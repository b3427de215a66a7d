// Adds accessible names that the theme omits.
document.addEventListener("DOMContentLoaded", () => {
  for (const summary of document.querySelectorAll("li.toctree-l1 summary, li summary")) {
    const link = summary.parentElement.parentElement.querySelector(":scope > a");
    summary.setAttribute("aria-label", `Pages of ${link ? link.textContent.trim() : "this part"}`);
  }
});
