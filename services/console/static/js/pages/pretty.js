// JSON with line breaks and indents. It works on the text: to read and write it again would lose what matters here, members that
// are given twice, and the digits of large numbers.

export function pretty(text) {
  try { JSON.parse(text); } catch { return null; }
  const tokens = text.match(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g) || [];
  let out = '';
  let depth = 0;
  const line = () => '\n' + '  '.repeat(depth);
  tokens.forEach((token, i) => {
    const next = tokens[i + 1];
    if (token === '{' || token === '[') {
      depth++;
      out += token + (next === '}' || next === ']' ? '' : line());
    } else if (token === '}' || token === ']') {
      depth--;
      out += (tokens[i - 1] === '{' || tokens[i - 1] === '[' ? '' : line()) + token;
    } else if (token === ',') out += ',' + line();
    else if (token === ':') out += ': ';
    else out += token;
  });
  return out;
}
