// The actions of the tests of the puzzles, evaluated in the page.
window.puzzles = (() => {
  const wait = (time = 10) => new Promise((go) => setTimeout(go, time));
  const place = async (folder) => {
    const place = document.querySelector(`[data-puzzle="${folder}"]`);
    place.scrollIntoView();
    for (let i = 0; i < 1000 && !("ready" in place.dataset); i++) await wait();
    return place.querySelector(".stepper");
  };
  const settled = async (folder) => {
    const root = await place(folder);
    const start = performance.now();
    for (let i = 0; i < 6000 && root.getAttribute("aria-busy"); i++) await wait();
    const verdict = root.querySelector(".verdict");
    return {
      says: verdict.firstElementChild?.textContent ?? "",
      all: verdict.textContent,
      solved: !root.querySelector(".solved-mark").hidden,
      seconds: (performance.now() - start) / 1e3,
    };
  };
  return {
    settled,
    choose: async (folder, name) => {
      const root = await place(folder);
      root.querySelector(`input[value="${name}"]`).click();
      root.querySelector("form").requestSubmit();
      return settled(folder);
    },
    paste: async (folder, ptx) => {
      const root = await place(folder);
      root.querySelector("textarea").value = ptx;
      root.querySelector("form.yours").requestSubmit();
      return settled(folder);
    },
    step: async (folder) => {
      const root = await place(folder);
      root.querySelector("button.step").click();
      const steps = root.querySelector(".steps");
      for (let i = 0; i < 1000 && !steps.querySelector(".says, .wrong")?.textContent; i++) await wait();
      return [steps.querySelector(".says, .wrong").textContent, Number(steps.querySelector("[type=range]")?.max)];
    },
    focus: async (folder, selector) => (await place(folder)).querySelector(selector).focus(),
    hole: async (folder) => [...(await place(folder)).querySelectorAll("li.hole")].map((line) => line.textContent).join("\n"),
    hints: async (folder) => {
      const hints = (await place(folder)).querySelectorAll(".hints li");
      return [hints.length, document.activeElement === hints[hints.length - 1]];
    },
    progress: () => document.querySelector("[data-progress]").textContent,
  };
})();
true;
