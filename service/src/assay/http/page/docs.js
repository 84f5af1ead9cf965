// Shows this server's OpenAPI document. Read from the document alone, so that it cannot say anything else.

let shapes = {};

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/** Text with `code` and line breaks, as descriptions have them. */
function prose(text) {
  return (text ?? "").split("`").map((part, index) => (index % 2 ? element("code", {}, part) : part.replace(/\s+/g, " ")));
}

function type(schema, depth = 0) {
  if (!schema) return "anything";
  if (schema.$ref) return schema.$ref.split("/").pop();
  const several = schema.anyOf ?? schema.oneOf;
  if (several) return several.map((one) => type(one, depth + 1)).join(" or ");
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" or ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.type === "array") return `list of ${type(schema.items, depth + 1)}`;
  if (schema.format === "binary") return "bytes";
  if (!schema.type) return "anything";
  const bounds = [schema.minimum, schema.maximum];
  const range = bounds.every((bound) => bound !== undefined) && ` from ${bounds[0]} to ${bounds[1]}`;
  return schema.type + (range || "");
}

function table(columns, rows) {
  return element("table", { class: "reference" },
    element("thead", {}, element("tr", {}, ...columns.map((name) => element("th", { scope: "col" }, name)))),
    element("tbody", {}, ...rows.map((cells) => element("tr", {}, ...cells.map((cell) => element("td", {}, ...[cell].flat()))))));
}

const kinds = (content) => Object.entries(content ?? {}).flatMap(([media, { schema }], index) => [
  ...(index ? [element("br")] : []), element("code", {}, media), ` ${type(schema)}`,
]);

function curl(method, path, { requestBody }) {
  const address = `${location.origin}${new URL(`.${path}`, location.href).pathname.replaceAll("%7B", "{").replaceAll("%7D", "}")}`
    .replace("{model}", "assay");
  const sends = requestBody?.content ?? {};
  if (sends["image/jpeg"]) return `curl --data-binary @photo.jpg '${address}'`;
  if (sends["application/json"]) {
    return `printf '{"inputs":[{"name":"encoded","shape":[1],"datatype":"BYTES","data":["%s"]}]}' "$(base64 -w0 photo.jpg)" |\n`
      + `  curl --json @- '${address}'`;
  }
  return `curl '${address}'`;
}

function operation(method, path, told) {
  const parts = [element("pre", { tabindex: "0", "aria-label": "Example" }, element("code", {}, curl(method, path, told)))];
  if (told.parameters?.length) {
    parts.push(element("h3", {}, "Parameters"), table(["Name", "In", "Type", "Meaning"], told.parameters.map((one) => [
      [element("code", {}, one.name), one.required ? " (required)" : ""], one.in, type(one.schema), prose(one.description),
    ])));
  }
  if (told.requestBody) parts.push(element("h3", {}, "Body"), element("p", {}, ...kinds(told.requestBody.content)));
  parts.push(element("h3", {}, "Answers"), table(["Status", "Meaning", "Content"], Object.entries(told.responses).map(
    ([status, { description, content }]) => [element("code", {}, status), prose(description), kinds(content)],
  )));
  return element("details", { class: "operation" },
    element("summary", {}, element("span", { class: "method" }, method.toUpperCase()), element("code", {}, path),
      element("span", {}, told.summary ?? "")),
    element("div", { class: "inside" }, ...parts));
}

function shape(name, schema) {
  const required = new Set(schema.required);
  const rows = Object.entries(schema.properties ?? {}).map(([key, value]) => [
    [element("code", {}, key), required.has(key) ? "" : " (optional)"], type(value), prose(value.description),
  ]);
  return element("details", { class: "operation", id: `shape-${name}` },
    element("summary", {}, element("code", {}, name)),
    element("div", { class: "inside" }, element("p", {}, ...prose(schema.description)), table(["Name", "Type", "Meaning"], rows)));
}

async function show() {
  const told = await (await fetch("openapi.json")).json();
  shapes = told.components?.schemas ?? {};
  document.getElementById("about").replaceChildren(...prose(told.info.description), ` Version ${told.info.version}.`);
  const groups = new Map();
  for (const [path, methods] of Object.entries(told.paths)) {
    for (const [method, one] of Object.entries(methods)) {
      const group = one.tags?.[0] ?? "Pages";
      groups.set(group, [...(groups.get(group) ?? []), operation(method, path, one)]);
    }
  }
  const target = document.getElementById("reference");
  for (const [group, operations] of groups) target.append(element("h2", {}, group), ...operations);
  target.append(element("h2", {}, "Shapes"), ...Object.entries(shapes).map(([name, schema]) => shape(name, schema)));
  target.querySelector("details").open = true;
}

show().catch((error) => {
  document.getElementById("about").textContent = `The document could not be read: ${error}`;
});
