// A part of the page, in one line: at the address of a step, it loads the files of that step before the rest of the page.
const scene = /^#live=([\w-]+)/.exec(location.hash)?.[1];
if (scene && !window.linrecLive) {
    window.linrecLive = { early: [], arrive: (...what) => linrecLive.early.push(what) };
    for (const name of ["module", `scene-${scene}`, "live"]) document.write(`<script src="FOLDER/${name}.js"><\/script>`);
}
