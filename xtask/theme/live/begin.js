// Puts what is live below each figure that has it, when it comes near.

// At the address of a state it all begins before the page has been read.
const first = /^[\w-]+$/.test(linked()?.get("live") ?? "") ? new Debugger(linked().get("live")) : null;
first?.prepare().catch(() => {}); // its place in the page is told

const made = ({ dataset: { scene, widget } }) => {
    if (widget) return new Widget(widget);
    if (!scene) return new Yours();
    return scene === first?.name ? first : new Debugger(scene);
};

// A figure that cannot be made live stays, and says why.
const begin = (place) => made(place).begin(place).then(() => {
    place.dataset.ready = "";
    performance.mark("live");
}).catch((error) => {
    place.dataset.ready = "";
    place.append(make("p", { class: "live-note" }, `This figure could not be made live here: ${error.message}.`));
});

const near = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
        if (!isIntersecting) continue;
        near.unobserve(target);
        begin(target);
    }
}, { rootMargin: "800px" });

// Once for what has been read of the page by now, and once for the rest of it.
const look = () => {
    for (const place of document.querySelectorAll(".live:not([data-seen])")) {
        place.dataset.seen = "";
        if (first && place.dataset.scene === first.name) begin(place);
        else near.observe(place);
    }
};
look();
document.addEventListener("DOMContentLoaded", look);
