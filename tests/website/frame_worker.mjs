// Runs website/frame_worker.js with a page of stand-ins, and a worker's script in its frame.
// node frame_worker.mjs FRAME_WORKER WORKER MESSAGES: prints what the worker answers, as JSON.
import fs from "node:fs";
import vm from "node:vm";

const [, , shim, worker, messages] = process.argv;

function makeFrame() {
  const target = new EventTarget();
  const inside = vm.createContext({
    MessageEvent, console, setTimeout, Promise, URL,
    addEventListener: target.addEventListener.bind(target),
    dispatchEvent: target.dispatchEvent.bind(target),
    lunr: undefined,
  });
  inside.self = inside;
  inside.document = {
    createElement: () => ({}),
    body: {
      appendChild(script) {
        try {
          vm.runInContext(fs.readFileSync(new URL(script.src), "utf8"), inside);
          queueMicrotask(script.onload);
        } catch (error) {
          queueMicrotask(() => script.onerror(error));
        }
      },
    },
  };
  inside.frameElement = { remove() { inside.gone = true; } };
  return { contentWindow: inside };
}

const page = vm.createContext({
  EventTarget, MessageEvent, Promise, URL, Error,
  location: { protocol: "file:" },
  document: { baseURI: "file:///", createElement: makeFrame, body: { appendChild() {} } },
});
page.window = page;
vm.runInContext(fs.readFileSync(shim, "utf8"), page);
const made = new page.Worker(worker);
const asked = JSON.parse(fs.readFileSync(messages, "utf8"));
let answers = 0;
made.addEventListener("message", (event) => {
  console.log(JSON.stringify(event.data));
  answers += 1;
  if (answers < asked.length) made.postMessage(asked[answers]);
});
made.postMessage(asked[0]);
