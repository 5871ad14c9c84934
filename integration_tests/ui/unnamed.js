// Controls and parts without a name.
() => [...document.querySelectorAll("button, a, input, [tabindex='0'], [role=button], [role=img], section, nav")]
  .filter((one) => one.getClientRects().length)
  .filter((one) => !(one.getAttribute("aria-label") || one.labels?.length || one.textContent.trim() || document.getElementById(one.getAttribute("aria-labelledby"))))
  .map((one) => one.outerHTML.slice(0, 100))
