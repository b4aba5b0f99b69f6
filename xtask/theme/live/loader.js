// What live pages load: the module, and scenes. All that a page shows is computed by the module; these scripts draw its
// answers, and ask for the next. `cargo book` makes one script of them, in a block of its own.

const folder = new URL(".", document.currentScript.src);

// What is going to arrive, or has arrived before this script, by name.
const arrivals = new Map();
for (const [name, value] of window.linrecLive?.early ?? []) arrivals.set(name, { promise: Promise.resolve(value) });

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

// The module, compiled: that with the judge where there are puzzles. Not in a worker: that is a second engine to start, while the page needs the machine.
let compiled;
function compile() {
    compiled ??= (async () => {
        const unpacked = new DecompressionStream("gzip");
        const writer = unpacked.writable.getWriter();
        // All at once; what is wrong with it is said where it is read. (A stream of a `Blob` would fetch it piece by piece.)
        const file = document.querySelector("[data-puzzle]") ? "module-puzzles.js" : "module.js";
        writer.write(bytes(await load("module", file))).catch(() => {});
        writer.close().catch(() => {});
        return WebAssembly.compile(await new Response(unpacked.readable).arrayBuffer());
    })();
    return compiled;
}

// What a text in base 64 stands for.
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
