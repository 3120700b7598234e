// The Markdown of the manual, as the screen Docs reads it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { blocks, inline } from '../../web/docs/markdown.js';

test('comments are not shown, and lists hold code', () => {
  const text = '<!-- for\nprograms -->\nText\n2026. Still\n\n    indented\n\n1. one\n   goes on:\n\n   ```sh\n   run\n   ```\n\n2. two';
  assert.deepEqual(blocks(text), [
    { kind: 'text', text: 'Text 2026. Still' },
    { kind: 'code', text: 'indented' },
    { kind: 'list', items: [
      [{ kind: 'text', text: 'one goes on:' }, { kind: 'code', text: 'run' }],
      [{ kind: 'text', text: 'two' }],
    ] },
  ]);
});

test('a picture is its text', () => {
  assert.deepEqual(inline('see ![a tree](images/a.png)'), [{ kind: 'text', text: 'see ' }, { kind: 'link', text: 'a tree', to: 'images/a.png' }]);
});
