// The view and its state are in the fragment of the URL, so that every state has a link:
// #/node/ID?tab=live&where=…

import { useEffect, useState } from "preact/hooks";

export interface Route {
  /** The parts of the path, decoded. */
  path: string[];
  query: URLSearchParams;
}

export function parse(hash: string): Route {
  const text = hash.replace(/^#\/?/, "");
  const at = text.indexOf("?");
  const path = at < 0 ? text : text.slice(0, at);
  return {
    path: path.split("/").filter(Boolean).map(decode),
    query: new URLSearchParams(at < 0 ? "" : text.slice(at + 1)),
  };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // somebody edited the URL
  }
}

export function link(path: string[], query: Record<string, string> = {}): string {
  const q = new URLSearchParams();
  for (const [k, v] of Object.entries(query)) if (v !== "") q.set(k, v);
  const text = q.toString();
  return `#/${path.map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`;
}

export const nodeLink = (id: string, query: Record<string, string> = {}) => link(["node", id], query);

export function useRoute(): Route {
  const [route, set] = useState(() => parse(location.hash));
  useEffect(() => {
    const changed = () => set(parse(location.hash));
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return route;
}

/** Changes parameters of the present view, without an entry in the history of the browser. */
export function setQuery(change: Record<string, string>) {
  const r = parse(location.hash);
  const all = Object.fromEntries(r.query);
  history.replaceState(null, "", link(r.path, { ...all, ...change }));
  dispatchEvent(new HashChangeEvent("hashchange"));
}
