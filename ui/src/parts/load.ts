import { useEffect, useState } from "preact/hooks";

export interface Loaded<T> {
  value?: T;
  error?: Error;
}

/** Loads a value, again whenever a dependency changes, and keeps the last one meanwhile. */
export function useLoad<T>(load: (signal: AbortSignal) => Promise<T>, deps: readonly unknown[]): Loaded<T> {
  const [state, set] = useState<Loaded<T>>({});
  useEffect(() => {
    const abort = new AbortController();
    load(abort.signal).then(
      (value) => set({ value }),
      (error) => abort.signal.aborted || set((old) => ({ value: old.value, error })),
    );
    return () => abort.abort();
  }, deps);
  return state;
}
