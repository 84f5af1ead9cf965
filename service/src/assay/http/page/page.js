// Sends a photo to this server and shows what it answers. No other host is spoken to, and nothing is kept.

const STAGES = {
  receive: "Receive", cache: "Look in the cache", queue: "Wait for a worker", decode: "Decode", preprocess: "Resize", batch_wait: "Wait for a batch",
  infer: "Model", postprocess: "Rank", respond: "Respond",
};
const LABELS = 5; // what fits beside a photo on a phone
const at = (id) => document.getElementById(id);
let latest = 0; // an answer that is not to the latest photo is not shown
let previewUrl = null;

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

const percent = (score) => `${(score * 100).toFixed(score < 0.1 ? 1 : 0)} %`;
const milliseconds = (value) => value.toFixed(value < 10 ? 1 : 0);

/** Stage names and milliseconds of a Server-Timing header. */
function timings(header) {
  return (header ?? "").split(",").map((entry) => {
    const [name, ...parameters] = entry.trim().split(";");
    const duration = parameters.map((text) => text.trim()).find((text) => text.startsWith("dur="));
    return [name, Number(duration?.slice(4))];
  }).filter(([name, value]) => name && Number.isFinite(value));
}

function showModel(facts) {
  at("model").replaceChildren(...facts.map(([term, value, wide]) => element(
    "div", wide ? { class: "wide" } : {}, element("dt", {}, term),
    element("dd", {}, term === "Digest" ? element("code", {}, value) : value),
  )));
}

async function askForModel() {
  try {
    const response = await fetch("v1/model", { cache: "no-store" });
    const told = await response.json();
    if (!response.ok) {
      showModel([["State", told.detail]]);
      setTimeout(askForModel, 1000 * (Number(response.headers.get("Retry-After")) || 1));
      return;
    }
    const facts = [
      ["Name", told.name, true], ["Precision", told.precision], ["Classes", String(told.classes)],
      ["CPU limit", `${told.cpu_limit_millicores / 1000} cores, ${told.workers} ${told.workers === 1 ? "worker" : "workers"}`, true],
    ];
    if (told.variant) facts.push(["Variant", told.variant]);
    showModel([...facts, ["Digest", told.digest, true]]);
  } catch {
    showModel([["State", "The server does not answer."]]);
  }
}

function showAnswer(answer, header, roundTrip) {
  at("labels").replaceChildren(...answer.predictions.map(({ label, score }) => {
    const fill = element("div", { class: "fill" });
    fill.style.width = `${score * 100}%`;
    return element("li", {}, element("span", {}, label), element("span", { class: "score" }, percent(score)),
      element("div", { class: "track", "aria-hidden": "true" }, fill));
  }));
  const stages = timings(header);
  const inside = stages.reduce((sum, [, value]) => sum + value, 0);
  const parts = [...stages, ["network", Math.max(0, roundTrip - inside)]];
  at("stages").replaceChildren(...parts.map(([name, value]) => {
    const part = element("div", { class: `stage-${name}` });
    part.style.flexGrow = value;
    return part;
  }));
  const row = (name, text, value) => element("tr", {}, element("th", { scope: "row" },
    element("span", { class: `swatch stage-${name}`, "aria-hidden": "true" }), text), element("td", {}, milliseconds(value)));
  at("times").replaceChildren(...parts.map(([name, value]) => row(name, STAGES[name] ?? "Network and browser", value)));
  at("total").replaceChildren(element("tr", {}, element("th", { scope: "row" }, "Together"),
    element("td", {}, milliseconds(Math.max(roundTrip, inside)))));
  at("answer").hidden = false;
  const best = answer.predictions[0];
  at("status").textContent =
    `Looks like ${best.label}, ${percent(best.score)}. ${milliseconds(inside)} ms in the server.`;
}

function showProblem(title, detail, small) {
  at("problem").replaceChildren(element("strong", {}, title), element("p", {}, detail),
    ...(small ? [element("small", {}, small)] : []));
  at("problem").hidden = false;
  at("status").textContent = "No answer for this photo.";
}

async function refusal(response) {
  const told = await response.json().catch(() => ({}));
  const wait = response.headers.get("Retry-After");
  const detail = told.detail ?? "The server gave no reason.";
  const small = [told.code, wait && `try again in ${wait} s`, response.headers.get("X-Request-Id")];
  showProblem(told.title ?? `Status ${response.status}`, detail, small.filter(Boolean).join(" · "));
}

async function classify(file) {
  const mine = ++latest;
  at("outcome").setAttribute("aria-busy", "true");
  at("problem").hidden = true;
  at("answer").hidden = true;
  at("status").textContent = `Classifying ${file.name || "the photo"}…`;
  if (previewUrl) URL.revokeObjectURL(previewUrl);
  previewUrl = URL.createObjectURL(file);
  at("preview").src = previewUrl;
  at("preview").alt = `The photo to classify: ${file.name || "pasted"}`;
  at("preview").hidden = false;
  at("invite").hidden = true;
  at("drop").classList.add("filled");
  const started = performance.now();
  try {
    const response = await fetch(`v1/classify?top_k=${LABELS}`, { method: "POST", body: file });
    const answer = response.ok ? await response.json() : null;
    const roundTrip = performance.now() - started;
    if (mine !== latest) return;
    if (answer) showAnswer(answer, response.headers.get("Server-Timing"), roundTrip);
    else await refusal(response);
  } catch (error) {
    if (mine === latest) showProblem("The server does not answer", "Look at your connection, and try again.", String(error));
  } finally {
    if (mine === latest) at("outcome").setAttribute("aria-busy", "false");
  }
}

function photoOf(transfer) {
  const files = [...transfer.files];
  return files.find((file) => file.type.startsWith("image/")) ?? files[0];
}

at("preview").addEventListener("error", () => { // a file the browser cannot show may still be one the server can read
  at("preview").hidden = true;
  at("invite").hidden = false;
  at("drop").classList.remove("filled");
});
for (const id of ["pick", "capture"]) {
  at(id).addEventListener("change", (event) => {
    const [file] = event.target.files;
    event.target.value = ""; // so that the same photo can be chosen again
    if (file) classify(file);
  });
}
document.addEventListener("paste", (event) => {
  const file = event.clipboardData && photoOf(event.clipboardData);
  if (file) { event.preventDefault(); classify(file); }
});
let depth = 0; // dragenter and dragleave come for every element inside
const dragging = (change) => {
  depth = change === null ? 0 : Math.max(0, depth + change);
  document.body.classList.toggle("dragging", depth > 0);
};
document.addEventListener("dragenter", (event) => { event.preventDefault(); dragging(1); });
document.addEventListener("dragleave", () => dragging(-1));
document.addEventListener("dragover", (event) => event.preventDefault());
document.addEventListener("drop", (event) => {
  event.preventDefault();
  dragging(null);
  const file = event.dataTransfer && photoOf(event.dataTransfer);
  if (file) classify(file);
});
// Cameras are where fingers point; `pointer: coarse` misses tablets with a keyboard.
document.body.classList.toggle("has-touch", navigator.maxTouchPoints > 0);
askForModel();
