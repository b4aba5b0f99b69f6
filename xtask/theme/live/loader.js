// What live pages load: the module, and scenes. All that a page shows is computed by the module; these scripts draw its
// answers, and ask for the next. `cargo book` makes one script of them, in a block of its own.

const folder = new URL(".", document.currentScript.src);
const arrivals = new Map();

// What `name` is going to be, from the script that holds it: a page that was opened from disk may load nothing else.
function load(name, file) {
    if (!arrivals.has(name)) {
        const arrival = {};
        arrival.promise = new Promise((arrive, fail) => {
            arrival.arrive = arrive;
            const script = document.createElement("script");
            script.src = new URL(file, folder);
            script.onerror = () => fail(new Error(`${file} is missing`));
            document.head.append(script);
        });
        arrivals.set(name, arrival);
    }
    return arrivals.get(name).promise;
}

// The module, compiled. Not in a worker: that is a second engine to start, while the page needs the machine.
let compiled;
function compile() {
    compiled ??= (async () => {
        const text = atob(await load("module", "module.js"));
        const packed = new Uint8Array(text.length);
        for (let i = 0; i < text.length; i++) packed[i] = text.charCodeAt(i);
        const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
        return WebAssembly.compile(await new Response(stream).arrayBuffer());
    })();
    return compiled;
}

let started;
function start() {
    started ??= compile().then((module) => WebAssembly.instantiate(module, {})).then((instance) => instance.exports);
    return started;
}

// A request and its answer, both objects.
async function ask(request) {
    const module = await start();
    const text = new TextEncoder().encode(JSON.stringify(request));
    let answer;
    try {
        const place = module.request(text.length);
        new Uint8Array(module.memory.buffer, place, text.length).set(text);
        const length = module.answer();
        answer = new TextDecoder().decode(new Uint8Array(module.memory.buffer, module.place(), length));
    } catch (error) {
        // It has stopped in the middle of something: the next request finds a new one.
        started = null;
        throw error;
    }
    const result = JSON.parse(answer);
    if (result.error) throw new Error(result.error);
    return result;
}

window.linrecLive = {
    ask,
    start,
    module: (text) => arrivals.get("module").arrive(text),
    scene: (name, scene) => arrivals.get(`scene ${name}`).arrive(scene),
    puzzle: (name, puzzle) => arrivals.get(`puzzle ${name}`).arrive(puzzle),
    loadPuzzle: (name) => load(`puzzle ${name}`, `puzzle-${name}.js`),
    loadScene: (name) => load(`scene ${name}`, `scene-${name}.js`),
};

// An element with attributes, listeners (as functions) and children.
const make = (tag, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
        if (typeof value === "function") element.addEventListener(name, value);
        else if (value !== false && value != null) element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...children);
    return element;
};
