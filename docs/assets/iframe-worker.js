// Browsers start no worker from a file, and the search runs in one. Where the site is opened from the disk, a frame does its work.
"use strict";
if (location.protocol === "file:") {
  const loaded = (place, address) => new Promise((resolve, reject) => {
    const script = place.document.createElement("script");
    script.src = new URL(address, location.href);
    script.onload = resolve;
    script.onerror = reject;
    place.document.body.append(script);
  });

  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      this.inside = new Promise((resolve) => {
        frame.onload = async () => {
          const inside = frame.contentWindow;
          inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
          inside.importScripts = async (...addresses) => {
            for (const one of addresses) await loaded(inside, one);
          };
          await loaded(inside, address);
          resolve(inside);
        };
      });
      document.body.append(frame);
    }

    async postMessage(data) {
      const inside = await this.inside;
      inside.dispatchEvent(new inside.MessageEvent("message", { data }));
    }
  };
}
