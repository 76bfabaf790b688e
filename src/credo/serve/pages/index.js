"use strict";
// The models of this service, each with a link to its page; nothing is asked of another host.
const at = (id) => document.getElementById(id);

function line(model) {
  const one = document.createElement("li"), link = document.createElement("a"), words = document.createElement("span");
  link.href = "/models/" + encodeURIComponent(model.name);
  link.textContent = model.name;
  words.textContent = ` ${model.stage}, ${model.learned.toLocaleString("en")} learned`;
  one.append(link, words);
  return one;
}

async function list(token) {
  const headers = token ? { Authorization: "Bearer " + token } : {};
  const answer = await fetch("/v1/models", { headers });
  if (answer.status === 401 || answer.status === 403) { at("ask").hidden = false; at("stage").textContent = "a token is needed"; return; }
  const models = (await answer.json()).models;
  at("models").replaceChildren(...models.map(line));
  at("stage").textContent = models.length ? `${models.length} served` : "no models yet: add one with PUT /v1/models/NAME";
}

at("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("credo-token", at("token").value);
  at("ask").hidden = true;
  list(at("token").value);
});

list(sessionStorage.getItem("credo-token"));
