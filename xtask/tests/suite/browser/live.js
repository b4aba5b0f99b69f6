// The actions of the tests of live pages, evaluated in the page.
window.live = (() => {
  const wait = (time = 20) => new Promise((go) => setTimeout(go, time));
  const until = async (holds) => {
    for (let i = 0; i < 500 && !holds(); i++) await wait();
    return Boolean(holds());
  };
  const find = (selector) => document.querySelector(selector);
  const press = (key, root = document) => root.querySelector(".ways").dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  const settled = async () => {
    do await wait();
    while (find("[aria-busy]"));
  };
  const says = () => find(".stepper .says").textContent;
  const step = () => Number(find(".stepper [type=range]").value);
  const timed = async (request) => {
    const start = performance.now();
    await linrecLive.ask(request);
    return performance.now() - start;
  };
  return {
    timed,
    says,
    ready: () => until(() => find(".live[data-ready] .stepper")),
    // Presses keys and clicks on an element; returns the step that is shown then.
    go: async (keys = [], clicked = null) => {
      for (const key of keys) {
        press(key);
        await settled();
      }
      if (clicked !== null) find(clicked).click();
      await settled();
      return step();
    },
    fields: (names) => names.map((name) => find(".stepper form").elements[name].value).join(),
    // The milliseconds of steps back from the end: the median and the largest.
    back: async (length) => {
      const go = (request) => timed({ do: "go", id: 9, ...request });
      const times = [];
      await go({ by: "step", to: length });
      for (let i = 0; i < 200; i++) times.push(await go({ by: "instruction", back: true }));
      for (let i = 0; i < 100; i++) times.push(await go({ by: "line", back: true }));
      for (let to = length; to > 0; to -= length >> 6) times.push(await go({ by: "step", to }));
      times.sort((a, b) => a - b);
      return [times[times.length >> 1], times.at(-1)];
    },
    // The sentence of a widget, before and after a control is set, and its drawing.
    widget: async (name, control, value) => {
      const place = find(`[data-widget=${name}]`);
      place.scrollIntoView();
      await until(() => "ready" in place.dataset);
      const sentence = () => place.querySelector(".says").textContent;
      const first = sentence();
      const slider = place.querySelector(`input[name=${control}]`);
      slider.value = value;
      slider.dispatchEvent(new Event("input", { bubbles: true }));
      await until(() => sentence() !== first);
      return [first, sentence(), place.querySelector(".live-drawing").innerHTML];
    },
    // The report of a mistake, and the part of the page that shows it.
    mistake: async (scene) => {
      const stepper = find(`[data-scene=${scene}] .stepper`);
      const report = stepper.querySelector(".says");
      press("End", stepper);
      await until(() => report.matches(".wrong"));
      const [top, bottom] = [".title", "section"].map((part) => stepper.querySelector(part).getBoundingClientRect());
      const clip = { x: top.x - 12, y: top.y + scrollY - 12, width: top.width + 24, height: bottom.y - top.y, scale: 1 };
      return [report.textContent, clip];
    },
    // All live parts of the page: their names and places.
    places: () =>
      [...document.querySelectorAll(".stepper")].map((stepper) => {
        const { x, y, width, height } = stepper.getBoundingClientRect();
        const { scene, widget, puzzle } = stepper.parentElement.dataset;
        return [scene ?? widget ?? puzzle ?? "yours", { x: x + scrollX, y: y + scrollY, width, height, scale: 1 }];
      }),
    // The example on the page "Your own kernel".
    example: async () => {
      const place = find(".live");
      await until(() => "ready" in place.dataset);
      return place.dataset.yours;
    },
    // Runs PTX with these fields of the form; returns the sentence, the counters and the arrays.
    run: async (ptx, fields) => {
      const stepper = find(".stepper");
      const form = stepper.querySelector("form");
      form.querySelector("textarea").value = ptx;
      for (const [label, value] of fields) {
        const field = form.querySelector(`[aria-label="${label}"]`);
        field.value = value;
        field.dispatchEvent(new Event("change", { bubbles: true }));
      }
      delete stepper.dataset.launched;
      form.requestSubmit();
      await until(() => "launched" in stepper.dataset);
      const visible = (element) => (element.checkVisibility() ? element.textContent : "");
      return [".says", ".counters", ".arrays"].map((part) => visible(stepper.querySelector(part)));
    },
    line: () => find(".source [aria-current]").textContent.trim(),
  };
})();
true;
