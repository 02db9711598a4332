import { setQuery } from "../route";

/** A text field whose value is a parameter of the URL. */
export function Filter({ name, value, label }: { name: string; value: string; label: string }) {
  return (
    <input
      type="search"
      class="filter"
      aria-label={label}
      placeholder={label}
      value={value}
      onInput={(e) => setQuery({ [name]: e.currentTarget.value })}
    />
  );
}

/** Reports whether a text contains every word of a filter. */
export function matches(filter: string, text: string) {
  const lower = text.toLowerCase();
  return filter
    .toLowerCase()
    .split(/\s+/)
    .every((word) => lower.includes(word));
}
