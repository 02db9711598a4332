// The documentation of this version of weir.

import { useEffect, useRef } from "preact/hooks";
import { getJSON, nodePath } from "../api";
import { Filter } from "../parts/filter";
import { useLoad } from "../parts/load";
import { ErrorBox, Loading } from "../parts/message";
import { link, type Route } from "../route";

interface Page {
  name: string;
  title: string;
  summary: string;
}

interface Found {
  page: string;
  title: string;
  heading: string;
  anchor: string;
  text: string;
}

export function Docs({ route }: { route: Route }) {
  const name = route.path.slice(1).join("/");
  const search = route.query.get("search") ?? "";
  return (
    <div class="docs">
      <aside>
        <Filter name="search" value={search} label="Search the documentation" />
        <details open={matchMedia("(min-width: 761px)").matches || (!name && !search)}>
          <summary>Contents</summary>
          <Contents open={name} />
        </details>
      </aside>
      {search ? <Results search={search} /> : <Text name={name} anchor={route.query.get("at") ?? ""} />}
    </div>
  );
}

function Contents({ open }: { open: string }) {
  const { value } = useLoad((signal) => getJSON<{ pages: Page[] }>("/api/v0/docs", signal), []);
  return (
    <nav aria-label="Documentation">
      <ul class="plain">
        {value?.pages.map((p) => (
          <li key={p.name}>
            <a
              href={link(["docs", ...p.name.split("/")])}
              title={p.summary}
              aria-current={p.name === open ? "page" : undefined}
            >
              {p.title}
            </a>
          </li>
        ))}
      </ul>
    </nav>
  );
}

function Results({ search }: { search: string }) {
  const { value, error } = useLoad(
    (signal) => getJSON<{ found: Found[] }>(`/api/v0/docs?search=${encodeURIComponent(search)}`, signal),
    [search],
  );
  if (error) return <ErrorBox title="Cannot search." text={error.message} />;
  if (!value) return <Loading />;
  return (
    <section aria-labelledby="found">
      <h1 id="found">{value.found.length === 0 ? "Nothing found" : `Found for “${search}”`}</h1>
      {value.found.map((f) => (
        <article key={f.page + f.anchor} class="box">
          <a href={link(["docs", ...f.page.split("/")], { at: f.anchor })}>
            <strong>
              {f.title}
              {f.heading && ` – ${f.heading}`}
            </strong>
          </a>
          <p>{f.text}</p>
        </article>
      ))}
    </section>
  );
}

function Text({ name, anchor }: { name: string; anchor: string }) {
  const { value, error } = useLoad(
    (signal) => getJSON<{ title: string; html: string }>(nodePath("/api/v0/docs/", name || "index"), signal),
    [name],
  );
  const body = useRef<HTMLElement>(null);
  useEffect(() => {
    if (anchor) body.current?.querySelector(`[id="${CSS.escape(anchor)}"]`)?.scrollIntoView();
  }, [anchor, value]);
  if (error) return <ErrorBox title="Cannot load the page." text={error.message} />;
  if (!value) return <Loading />;
  return <article ref={body} class="text" onClick={follow} dangerouslySetInnerHTML={{ __html: value.html }} />;
}

/** Links between pages, such as ../docs/logs#files, stay in this view. */
function follow(e: MouseEvent) {
  const a = (e.target as Element).closest("a");
  const href = a?.getAttribute("href");
  if (!href || /^[a-z]+:/.test(href)) return;
  e.preventDefault();
  const [path = "", anchor = ""] = href.split("#");
  const page = path.replace(/^.*docs\/?/, "");
  const open = page || location.hash.replace(/^#\/docs\/?/, "").replace(/\?.*/, "");
  location.hash = link(["docs", ...open.split("/").filter(Boolean)], { at: anchor });
}
