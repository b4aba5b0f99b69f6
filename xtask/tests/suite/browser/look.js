// Finds the problems of this page, and its colours. Evaluated in the page; the value is the last expression.
(async () => {
  const problems = [];
  // Hidden solutions are part of the page.
  for (const details of document.querySelectorAll("details")) details.open = true;
  await document.fonts.ready;

  // Live figures begin when the reader comes near.
  for (const live of document.querySelectorAll(".live")) {
    live.scrollIntoView();
    for (let i = 0; i < 500 && !("ready" in live.dataset); i++) await new Promise((go) => setTimeout(go, 10));
    if (!live.querySelector(".stepper")) problems.push(`${live.dataset.scene} is not live: ${live.textContent.slice(-200)}`);
  }
  scrollTo(0, 0);

  const name = (element) => {
    const text = element.textContent.trim().replace(/\s+/g, " ").slice(0, 40);
    return `<${element.localName}${element.id ? " id=" + element.id : ""}> "${text}"`;
  };
  const main = document.querySelector("main");

  for (const element of main.querySelectorAll("math, svg, img")) {
    // mdBook's copy buttons, and the enlarged copy of a picture.
    if (element.closest(".buttons, .fa-svg, .img-wrapper")) continue;
    const box = element.getBoundingClientRect();
    if (box.width < 1 || box.height < 1) problems.push(`${name(element)} has no size`);
    if (element.localName === "img" && !element.naturalWidth) problems.push(`${element.src} is no picture`);
  }

  const formulas = main.querySelectorAll("math");
  const fonts = [...document.fonts].filter((font) => font.family.includes("Latin Modern Math"));
  if (formulas.length && !fonts.some((font) => font.status === "loaded")) {
    problems.push("the math font is not loaded");
  }
  for (const formula of formulas) {
    if (!getComputedStyle(formula).fontFamily.includes("Latin Modern Math")) {
      problems.push(`${name(formula)} is not set in the math font`);
      break;
    }
  }

  // Nothing may be wider than the page, unless it scrolls in its box.
  const page = document.scrollingElement;
  if (page.scrollWidth > innerWidth) problems.push("the page scrolls sideways");
  const scrolls = (element) => ["auto", "scroll"].includes(getComputedStyle(element).overflowX);
  const inOwnBox = (element) => {
    for (let box = element.parentElement; box && box !== main; box = box.parentElement) {
      if (scrolls(box)) return true;
    }
    return false;
  };
  for (const element of main.querySelectorAll("*")) {
    const box = element.getBoundingClientRect();
    if (box.width && box.right > innerWidth + 1 && !inOwnBox(element)) {
      problems.push(`${name(element)} is wider than the page at ${innerWidth} px`);
      break;
    }
  }

  const colour = (element, property) => element && getComputedStyle(element)[property];
  const figures = [...main.querySelectorAll("figure")].map((figure) => ({
    id: figure.id,
    paper: colour(figure.querySelector("[fill='#FFFFFF' i]"), "fill"),
    ink: colour(figure.querySelector("[fill='#000000' i]"), "fill"),
  }));
  const background = getComputedStyle(document.documentElement).backgroundColor;
  return { problems, colours: { background, figures } };
})()
