// Elements and canvases. Text becomes text nodes, whoever wrote it.

const byId = (id) => document.getElementById(id);

function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === 'class')
      made.className = value;
    else if (name in made)
      made[name] = value;
    else
      made.setAttribute(name, value);
  }
  made.append(...children);  // strings become text nodes
  return made;
}
const fillWith = (target, ...children) => target.replaceChildren(...children);

// A canvas that is as sharp as the screen; draw(context, width, height) in CSS pixels.
function paint(canvas, draw) {
  const width = canvas.clientWidth;
  const height = canvas.clientHeight;
  if (width === 0 || height === 0) return;
  const scale = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  const context = canvas.getContext('2d');
  context.scale(scale, scale);
  context.textBaseline = 'middle';
  draw(context, width, height);
}
const font = (size, weight = 400) => `${weight} ${size}px ${colors.sans}`;
