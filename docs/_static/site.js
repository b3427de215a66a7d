// What the theme leaves without a name for those who hear the page.
document.addEventListener("DOMContentLoaded", () => {
  for (const summary of document.querySelectorAll("li.toctree-l1 summary, li summary")) {
    const link = summary.parentElement.parentElement.querySelector(":scope > a");
    summary.setAttribute("aria-label", `Pages of ${link ? link.textContent.trim() : "this part"}`);
  }
});
