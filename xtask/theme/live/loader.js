// Loads the module and the scenes of live pages. The module computes everything that a page shows; these scripts draw its
// answers, and send the next requests. `cargo book` joins them into one script.

const folder = new URL(".", document.currentScript.src);

// The values that arrive later, or have arrived before this script, by name.
const arrivals = new Map();
for (const [name, value] of window.linrecLive?.early ?? []) arrivals.set(name, { promise: Promise.resolve(value) });

// Loads `name` from the script that holds it: a page from disk can load nothing else.
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

// Compiles the module, with the judge on the page of puzzles. Not in a worker, which would start a second engine while the
// page needs the machine.
let compiled;
function compile() {
    compiled ??= (async () => {
        const unpacked = new DecompressionStream("gzip");
        const writer = unpacked.writable.getWriter();
        // All at once; the reader reports a fault. (A stream of a `Blob` would fetch it piece by piece.)
        const file = document.querySelector("[data-puzzle]") ? "module-puzzles.js" : "module.js";
        writer.write(bytes(await load("module", file))).catch(() => {});
        writer.close().catch(() => {});
        return WebAssembly.compile(await new Response(unpacked.readable).arrayBuffer());
    })();
    return compiled;
}

// Decodes a text in base 64.
function bytes(text) {
    if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
    const letters = atob(text);
    const bytes = new Uint8Array(letters.length);
    for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
    return bytes;
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
        // The module has stopped in the middle of a request: the next request starts a new one.
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
    arrive: (name, value) => arrivals.get(name).arrive(value),
    loadPuzzle: (name) => load(`puzzle-${name}`, `puzzle-${name}.js`),
    loadScene: (name) => load(`scene-${name}`, `scene-${name}.js`),
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
