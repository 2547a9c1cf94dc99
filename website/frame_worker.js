// A browser starts no worker for a page that it reads from a folder, and the search is one. There its
// script runs in a hidden frame. MkDocs looks for "iframe-worker" in the name that this file gets.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.appendChild(frame);
      this.inside = frame.contentWindow;
      const load = (address) => new Promise((resolve, reject) => {
        const script = this.inside.document.createElement("script");
        script.src = new URL(address, document.baseURI).href;
        script.onload = resolve;
        script.onerror = () => reject(new Error(`${script.src} cannot be read`));
        this.inside.document.body.appendChild(script);
      });
      this.inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.inside.importScripts = (...addresses) => Promise.all(addresses.map(load));
      this.ready = load(url);
    }

    postMessage(data) {
      const event = new this.inside.MessageEvent("message", { data });
      this.ready.then(() => this.inside.dispatchEvent(event));
    }

    terminate() {
      this.inside.frameElement.remove();
    }
  };
}
