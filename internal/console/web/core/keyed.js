/**
 * Short lists whose elements stay: an element is made when its key first comes, drawn again
 * while the key is there, and taken away with it. So it keeps its focus, and a click that is
 * under way, while its list is read again and again.
 */

/**
 * @template T
 */
export class Keyed {
  /**
   * @param {Element} parent
   * @param {(item: T) => string} key
   * @param {(item: T) => {element: Element, draw?: (item: T) => void}} make
   */
  constructor(parent, key, make) {
    this.parent = parent;
    this.key = key;
    this.make = make;
    /** @type {Map<string, {element: Element, draw?: (item: T) => void}>} */
    this.rows = new Map();
  }

  /** Shows these items in this order. Of two with one key the first counts. @param {T[]} items */
  show(items) {
    /** @type {Map<string, {element: Element, draw?: (item: T) => void}>} */
    const now = new Map();
    for (const item of items) {
      const key = this.key(item);
      if (now.has(key)) continue;
      const row = this.rows.get(key) ?? this.make(item);
      row.draw?.(item);
      now.set(key, row);
    }
    for (const [key, row] of this.rows) if (!now.has(key)) row.element.remove();
    this.rows = now;
    let next = this.parent.firstElementChild;
    for (const { element } of now.values()) {
      if (element === next) next = next.nextElementSibling;
      else this.parent.insertBefore(element, next);
    }
  }
}
