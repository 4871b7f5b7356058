/* privstats: SPDX-License-Identifier: Apache-2.0 */
class PrivstatsError extends Error{constructor(code,sentence,{retry=false}={}){super(sentence);
this.name="PrivstatsError";
this.code=code;
this.retry=retry}
}
function refuse(code,sentence){throw new PrivstatsError(code,sentence)}
const others=(table,known,tell)=>Object.keys(table).forEach((key)=>known.includes(key)||tell(key));
const unsupported=(what)=>refuse("unsupported",`this client cannot answer a study with ${what}`);
const TEXT=new TextEncoder();
const utf8=(text)=>TEXT.encode(text);
const toHex=(bytes)=>Array.from(bytes,(byte)=>byte.toString(16).padStart(2,"0")).join("");
const u8=(value)=>Uint8Array.of(value);
const u32=(value)=>Uint8Array.of(value>>>24,value>>>16,value>>>8,value);
const equal=(left,right)=>left.length===right.length&&left.every((byte,i)=>byte===right[i]);
function fromHex(text,size){if(typeof text!=="string"||!/^([0-9a-f]{2})*$/.test(text)||(size??text.length/2)*2!==text.length)
return null;
return Uint8Array.from(text.match(/../g)??[],(digits)=>parseInt(digits,16))}
function join(...parts){const whole=new Uint8Array(parts.reduce((size,part)=>size+part.length,0));
let at=0;
for(const part of parts){whole.set(part,at);
at+=part.length}
return whole}
async function sha256(...parts){return new Uint8Array(await crypto.subtle.digest("SHA-256",join(...parts)))}
async function hmac(key,...parts){const algorithm={name:"HMAC",hash:"SHA-256"};
const held=await crypto.subtle.importKey("raw",key.length?key:new Uint8Array(32),algorithm,false,["sign"]);
return new Uint8Array(await crypto.subtle.sign("HMAC",held,join(...parts)))}
async function hkdf(secret,salt,info){const held=await crypto.subtle.importKey("raw",secret,"HKDF",false,["deriveBits"]);
const algorithm={name:"HKDF",hash:"SHA-256",salt,info:utf8(info)};
return new Uint8Array(await crypto.subtle.deriveBits(algorithm,held,256))}
function pkcs8(lastByte,raw){return join(Uint8Array.of(48,46,2,1,0,48,5,6,3,43,101,lastByte,4,34,4,32),raw)}
function x25519Private(raw){return crypto.subtle.importKey("pkcs8",pkcs8(110,raw),"X25519",false,["deriveBits"])}
async function x25519(held,peer){try{const key=await crypto.subtle.importKey("raw",peer,"X25519",false,[]);
const shared=new Uint8Array(await crypto.subtle.deriveBits({name:"X25519",public:key},held,256));
return shared.some((byte)=>byte)?shared:null}catch(error){if(error.name==="NotSupportedError")throw error;
return null}
}
const BASE_POINT=Uint8Array.of(9,...new Uint8Array(31));
const x25519Public=(held)=>x25519(held,BASE_POINT);
function signingKey(seed){return crypto.subtle.importKey("pkcs8",pkcs8(112,seed),"Ed25519",false,["sign"])}
async function publicOf(seed){try{const readable=await crypto.subtle.importKey("pkcs8",pkcs8(112,seed),"Ed25519",true,["sign"]);
const{x}=await crypto.subtle.exportKey("jwk",readable);
const letters=atob(x.replaceAll("-","+").replaceAll("_","/"));
return Uint8Array.from(letters,(letter)=>letter.charCodeAt(0))}catch{return null}
}
async function sign(key,statement){return new Uint8Array(await crypto.subtle.sign("Ed25519",key,statement))}
async function verify(publicKey,signature,statement){try{const key=await crypto.subtle.importKey("raw",publicKey,"Ed25519",false,["verify"]);
return await crypto.subtle.verify("Ed25519",key,signature,statement)}catch(error){if(error.name==="NotSupportedError")throw error;
return false}
}
async function aesGcm(key,nonce,content,associated=new Uint8Array()){const held=await crypto.subtle.importKey("raw",key,"AES-GCM",false,["encrypt"]);
const algorithm={name:"AES-GCM",iv:nonce,additionalData:associated};
return new Uint8Array(await crypto.subtle.encrypt(algorithm,held,content))}
function pack(value){if(typeof value==="number")return packNumber(value);
if(typeof value==="string")return join(header([0xd9,0xda],value.length,0xa0,32),utf8(value));
if(value instanceof Uint8Array)return join(header([0xc4,0xc5,0xc6],value.length),value);
return join(header([null,0xdc],value.length,0x90,16),...value.map(pack))}
function packNumber(value){if(value<0x80)return u8(value);
if(value<0x100)return Uint8Array.of(0xcc,value);
if(value<0x10000)return Uint8Array.of(0xcd,value>>>8,value);
return join(u8(0xce),u32(value))}
function header(codes,size,fixed=0,below=0){if(size<below)return u8(fixed|size);
if(size<0x100&&codes[0]!==null)return Uint8Array.of(codes[0],size);
if(size<0x10000)return Uint8Array.of(codes[1],size>>>8,size);
return join(u8(codes[2]),u32(size))}
const BITS=new DataView(new ArrayBuffer(8));
const LIFT=600;
function powerOfTwo(exponent){BITS.setUint32(0,((exponent+1023)<<20)>>>0);
BITS.setUint32(4,0);
return BITS.getFloat64(0)}
const ONE=powerOfTwo(52);
function rint(value){const size=Math.abs(value);
return size<ONE?Math.sign(value)*(size+ONE-ONE):value}
function binaryExponent(value){if(value===0)return 0;
BITS.setFloat64(0,value);
const exponent=(BITS.getUint32(0)>>>20)&0x7ff;
return exponent?exponent-1022:binaryExponent(value*powerOfTwo(64))-64}
function dot(left,right){let sum=0;
for(let i=0;i<left.length;i++)sum+=left[i]*right[i];
return sum}
function scaled(row,bits){const exponent=bits-binaryExponent(row.reduce((most,value)=>Math.max(most,Math.abs(value)),0));
const lift=exponent>LIFT?LIFT:0;
const[first,second]=[powerOfTwo(lift),powerOfTwo(exponent-lift)];
return row.map((value)=>value*first*second)}
function rowNorm(row){const bits=Math.floor((53-(32-Math.clz32(row.length-1)))/2);
const rows=scaled(row,bits);
const high=rows.map(rint);
const low=rows.map((value,i)=>rint((value-high[i])*powerOfTwo(bits)));
const rest=dot(high,low)*powerOfTwo(1-bits)+dot(low,low)*powerOfTwo(-2*bits);
const root=Math.sqrt(row.length);
return{rows,norm:Math.sqrt(dot(high,high)+rest),error:root*powerOfTwo(-(bits+1))+root*powerOfTwo(bits-48)}}
function quantize(row,{radius,scale,nonnegative=false}){const kept=Float64Array.from(nonnegative?row.map((value)=>Math.max(value,0)):row);
const whole=kept.map((value)=>rint(value*scale));
if(dot(whole,whole)<=radius*radius)return whole;
const{rows,norm,error}=rowNorm(kept);
const factor=(radius-Math.sqrt(row.length)/2)/(norm+error);
const shrunk=rows.map((value)=>rint(value*factor));
if(!(dot(shrunk,shrunk)<=radius*radius))throw new Error("a grid vector left its ball: report this bug");
return shrunk}
const TILE=1<<16;
const WORD=4294967296;
function lanesOf(vector,segments){if(new Uint8Array(Uint32Array.of(1).buffer)[0]!==1)refuse("unsupported","this machine stores numbers backwards");
let start=0;
return segments.map(([size,bits])=>{const words=new Uint32Array(bits>32?2*size:size);
const mask=maskOf(bits>32?bits-32:bits);
for(let i=0;i<size;i++){const value=vector[start+i];
if(bits<=32)words[i]=value&mask;
else{words[2*i]=value;
words[2*i+1]=Math.floor(value/WORD)&mask}
}
start+=size;
return{words,size,bits}})}
function maskOf(bits){return bits===32?-1:(1<<bits)-1}
const bytesOf=({words})=>new Uint8Array(words.buffer);
async function subtractStreams(lanes,keys){const held=await Promise.all(keys.map((key)=>crypto.subtle.importKey("raw",key,"AES-CTR",false,["encrypt"])));
const zeros=new Uint8Array(4*Math.max(...lanes.map((lane)=>Math.min(lane.words.length,lanesWords(lane,TILE)))));
for(const[number,lane]of lanes.entries()){for(let start=0,tile=0;start<lane.size;start+=TILE,tile++){const part=lane.words.subarray(lanesWords(lane,start),lanesWords(lane,Math.min(start+TILE,lane.size)));
const counter=join(u32(number),u32(0),u32(tile),u32(2));
for(const key of held){const algorithm={name:"AES-CTR",counter,length:32};
const stream=await crypto.subtle.encrypt(algorithm,key,zeros.subarray(0,part.byteLength));
(lane.bits>32?subtractPairs:subtractWords)(part,new Uint32Array(stream))}
}
}
}
const lanesWords=({bits},entries)=>(bits>32?2*entries:entries);
function subtractWords(words,stream){for(let i=0;i<words.length;i++)words[i]-=stream[i]}
function subtractPairs(words,stream){for(let i=0;i<words.length;i+=2){const borrow=words[i]<stream[i]?1:0;
words[i]-=stream[i];
words[i+1]-=stream[i+1]+borrow}
}
const packedBytes=(segments)=>segments.reduce((sum,[size,bits])=>sum+Math.ceil((size*bits)/8),0);
function packLanes(lanes){const out=new Uint8Array(packedBytes(lanes.map(({size,bits})=>[size,bits])));
let at=0;
for(const lane of lanes){for(let start=0;start<lane.size;start+=TILE){at=packTile(lane,start,Math.min(TILE,lane.size-start),out,at)}
}
return out}
const ARRAYS={1:Uint8Array,2:Uint16Array,4:Uint32Array};
function packTile(lane,start,count,out,at){const step=lane.bits>32?2:1;
const words=lane.words.subarray(start*step,(start+count)*step);
let column=0;
for(const width of[8,4,2,1]){if(!((lane.bits>>>3)&width))continue;
const plane=width===8?words:new ARRAYS[width](count);
if(width<8){const shift=8*(column&3);
for(let i=0,from=column>>2;i<count;i++,from+=step)plane[i]=words[from]>>>shift}
out.set(new Uint8Array(plane.buffer,plane.byteOffset,plane.byteLength),at);
at+=width*count;
column+=width}
return lane.bits&7?packTop(words,step,column,lane.bits&7,count,out,at):at}
function packTop(words,step,column,bits,count,out,at){const groups=count>>>3;
const shift=8*(column&3);
const mask=(1<<bits)-1;
const last=at+bits*groups;
for(let entry=0,from=column>>2;entry<count;){const group=entry>>>3;
const[place,stride]=group<groups?[at+group,groups]:[last,1];
let held=0;
let length=0;
let to=place;
for(const end=Math.min(entry+8,count);entry<end;entry++,from+=step){held|=((words[from]>>>shift)&mask)<<length;
length+=bits;
if(length>=8){out[to]=held;
to+=stride;
held>>>=8;
length-=8}
}
if(length)out[to]=held}
return last+Math.ceil(((count&7)*bits)/8)}
const SUITE=utf8("privstats/upload/1 X25519 Ed25519 HKDF-SHA256 AES-256-GCM");
const label=(purpose)=>join(utf8(`privstats/upload/1/${purpose}`),u8(0));
const derive=(secret,purpose,context)=>hkdf(secret,context,`privstats/upload/${purpose}`);
function parametersDigest({clients,least,colluders,helpers,segments,plan,noisyHelpers}){const numbers=[clients,least,colluders,helpers,helpers-1];
const stated=[SUITE,"split",numbers,segments,plan,...(noisyHelpers?["noisy helpers"]:[])];
return sha256(utf8("privstats/upload/parameters"),pack(stated))}
async function contextOf(parameters,roster,members){const panel=await sha256(label("panel"),...members.flatMap(({identity,boxKey})=>[identity,boxKey]));
return sha256(label("context"),parameters,roster,panel)}
const KEM=utf8("KEM\0 ");
const HPKE=join(utf8("HPKE\0 "),Uint8Array.of(0,1,0,2));
const VERSION=utf8("HPKE-v1");
const extract=(suite,salt,purpose,content)=>hmac(salt,VERSION,suite,utf8(purpose),content);
async function expand(suite,secret,purpose,info,size){return(await hmac(secret,u8(0),u8(size),VERSION,suite,utf8(purpose),info,u8(1))).subarray(0,size)}
async function hpkeSeal(receiver,ephemeral,content,info){const held=await x25519Private(ephemeral);
const[enc,exchanged]=await Promise.all([x25519Public(held),x25519(held,receiver)]);
if(exchanged===null)refuse("bad_offer","a member of the study's panel offers a key that hides nothing");
const empty=new Uint8Array();
const prk=await extract(KEM,empty,"eae_prk",exchanged);
const[shared,names,about]=await Promise.all([expand(KEM,prk,"shared_secret",join(enc,receiver),32),extract(HPKE,empty,"psk_id_hash",empty),extract(HPKE,empty,"info_hash",info)]);
const context=join(u8(0),names,about);
const secret=await extract(HPKE,shared,"secret",empty);
const[key,nonce]=await Promise.all([expand(HPKE,secret,"key",context,32),expand(HPKE,secret,"base_nonce",context,12)]);
return join(enc,await aesGcm(key,nonce,content))}
async function boxesRoot(boxes){let level=await Promise.all(boxes.map((box,i)=>sha256(label("box-hash"),u8(i+1),box)));
while(level.length&(level.length-1))level.push(new Uint8Array(32));
while(level.length>1){const pairs=level.filter((_,i)=>i%2===0).map((left,i)=>[left,level[2*i+1]]);
level=await Promise.all(pairs.map((pair)=>sha256(utf8("privstats/secagg/2/node\0"),...pair)))}
return level[0]}
async function secretOf(root,context,sender,lanes){const key=await derive(root,"hedge",context);
const hedge=await aesGcm(key,new Uint8Array(12),new Uint8Array(),join(u32(sender),...lanes.map(bytesOf)));
return derive(join(root,hedge),`secret/${sender}`,context)}
async function reportOf({context,boxKeys,segments},{index,key},vector,root){const lanes=lanesOf(vector,segments);
const secret=await secretOf(root,context,index,lanes);
root.fill(0);
const helpers=boxKeys.slice(1).map((_,i)=>i+1);
const seeds=await Promise.all(helpers.map((place)=>derive(secret,`seed/${place}`,context)));
await subtractStreams(lanes,await Promise.all(seeds.map((seed)=>derive(seed,`stream/${index}`,context))));
const sealed=async(content,place)=>{const ephemeral=await derive(secret,`ephemeral/${place}`,context);
return hpkeSeal(boxKeys[place],ephemeral,content,join(label("box"),context,u32(index),u8(place)))};
const[body,...boxes]=await Promise.all([packLanes(lanes),...seeds].map(sealed));
const statement=join(label("report"),context,u32(index),body.subarray(0,32),await boxesRoot(boxes));
return join(u8(1),pack([0,context,index,join(...boxes),body,await sign(key,statement)]))}
const LETTERS="ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const LINK=/^#?1\.(0|[1-9][0-9]{0,9})\.([A-Z2-7]{26})\.([A-Z2-7]{4})$/;
function base32(bytes){const bits=Array.from(bytes,(byte)=>byte.toString(2).padStart(8,"0")).join("");
return bits
.match(/.{1,5}/g)
.map((five)=>LETTERS[parseInt(five.padEnd(5,"0"),2)])
.join("")}
function codeBytes(code){const bits=Array.from(code,(letter)=>LETTERS.indexOf(letter).toString(2).padStart(5,"0")).join("");
return Uint8Array.from(bits.slice(0,128).match(/.{8}/g),(eight)=>parseInt(eight,2))}
async function readLink(text){const plain=String(text)
.slice(String(text).lastIndexOf("#")+1)
.replace(/[\s-]/g,"")
.replace(/[a-z]/g,(letter)=>letter.toUpperCase());
const[,index,letters,check]=plain.match(LINK)??[];
if(!index||Number(index)>0xffffffff)
refuse("bad_link","this is no whole invitation: copy it again, to its last letter");
const code=codeBytes(letters);
const sum=await sha256(utf8("privstats/devices/1/link"),u8(0),utf8(`1.${index}.${letters}`));
if(base32(sum).slice(0,4)!==check||base32(code)!==letters){refuse("bad_link","a letter of this invitation is wrong: compare it with your letter, or copy it again")}
return{index:Number(index),code}}
async function seedOf(code){const seed=await hkdf(code,new Uint8Array(),"privstats/devices/1/identity");
code.fill(0);
return seed}
function studyOf(run,plan,roster){return sha256(utf8("privstats/devices/1/study"),u8(0),u8(run.length),join(run,plan,roster))}
const ENGLISH={lang:"en","asked.counts":"{asked}. Only the group that your answer falls into is counted.","asked.numbers":"{asked}. Your number and its square are added up.","asked.sums":"Sums over {features} numbers of each record.","sent.two":
"One message, locked on this device. It can be read only if {all} both work together against you, or by " +
"somebody who keeps it until today’s locks are broken.","sent.more":
"One message, locked on this device. It can be read only if {all} all work together against you, or by " +
"somebody who keeps it until today’s locks are broken.",made:"They publish only totals, over at least {least} answers.",promise:
"Noise is added to the totals: whatever you answer, no result becomes more than {factor} times as likely, except " +
"with a chance of 1 in {chance} (ε = {epsilon}).","promise.record":
"Noise is added to the totals: whatever a record of this device says (per record), no result becomes more than " +
"{factor} times as likely, except with a chance of 1 in {chance} (ε = {epsilon}).",exact:"The totals are exact. Who knows all other answers could work out yours.",trusted:"{leader} sees the exact totals, and is trusted with them.",times:"All {runs} times that you may be asked are counted together.",known:"That you answered is not secret: {others} can see which invitations were used, and when.",final:"Once sent, an answer cannot be changed or called back, not even before the study closes.",here:"This browser remembers that an answer was sent, until you choose “Forget”.",page:"This page comes from {page}, who must not change it to read answers.","page.registrar":"This page comes from {page}, who could read your answer by changing it, and is trusted not to.","cell.under":"under {high}","cell.upTo":"up to {high}","cell.more":"{low} or more","cell.over":"over {low}","cell.between":"{low} to {high}","cell.other":"another answer","cell.missing":"rather not say",waiting:"Your answer is safe on this device and is not sent yet. It is tried again by itself; keep this page open.",stopped:
"Your answer is safe on this device and is not sent: press “Send” to try again. It is also tried when this device " +
"is online again or you come back to this page.","code.already_here":"An answer has already come from this invitation. If it was not yours, tell who invited you.","code.closed":"This study takes no more answers: it has closed. Nothing of yours was sent.","code.over":"This study is over: it takes no more answers.","code.stranger":"This invitation is not for this study. Ask who invited you for another one.","code.bad_signature":"This invitation is not for this study. Ask who invited you for another one.","code.unknown_run":"This study is not here. Ask who invited you for the right link.","code.no_panel":"This study has not begun. Come back later with the same invitation.","code.unreachable":"The study’s server cannot be reached: are you online?","code.clock":"The clock of this device is wrong by more than an hour: set it, then come back.","code.else":"This did not work. Tell who invited you, and say the word “{code}”."};
const SOME=new Uint8Array(32).fill(1);
const TRIED={"SHA-256":()=>sha256(SOME),HMAC:()=>hmac(SOME,SOME),HKDF:()=>hkdf(SOME,SOME,""),"AES-GCM":()=>aesGcm(SOME,SOME.subarray(0,12),SOME),Ed25519:async()=>sign(await signingKey(SOME),SOME),X25519:async()=>x25519Public(await x25519Private(SOME))};
async function requirePrimitives(){const lacks=async([name,attempt])=>((await attempt().then(Boolean,()=>false))?[]:[name]);
const tried=await Promise.all(Object.entries(TRIED).map(lacks));
const missing=globalThis.crypto?.subtle?tried.flat().join(", "):"a secure connection (https)";
if(missing)
refuse("too_old",`This browser is too old to send an answer safely: it lacks ${missing}. Use another one.`)}
function leaderOf(pins){const{leader,run,study}=pins??{};
const size=fromHex(run)?.length;
const checked={leader:/^https?:\/\/[\w.:[\]-]+\/?$/.test(String(leader)),run:size>=16&&size<=32,study:fromHex(study,32)};
for(const[field,good]of Object.entries(checked)){if(!good)refuse("bad_pins",`the page's "${field}" is not as study.json has it: copy it again`)}
return leader.replace(/\/$/,"")}
function wordsIn(table={}){if(table===null||typeof table!=="object")refuse("wrong_type","words must be an object of sentences");
for(const[key,sentence]of Object.entries(table)){const strange=(hole)=>!String(ENGLISH[key]??hole).includes(hole);
if(typeof sentence!=="string"||!sentence||sentence.match(/{\w+}/g)?.some(strange))
refuse("wrong_type",`words: "${key}" must be a text as words.json has it`)}
const whole=Object.freeze({...ENGLISH,...table});
if(!/^[a-z]{2,3}(-[^\W_]{2,8})*$/.test(whole.lang))refuse("wrong_type",'words:"lang" must be a tag such as "pt-BR"');
return whole}
function say(words,key,values={}){return words[key].replace(/\{(\w+)\}/g,(_,name)=>shown(values[name],words.lang))}
function shown(value,lang){if(Array.isArray(value))return new Intl.ListFormat(lang).format(value);
return typeof value==="number"?value.toLocaleString(lang,{maximumSignificantDigits:15}):value}
function sentenceOf(code,words=ENGLISH){const key=`code.${code}`;
return Object.hasOwn(words,key)?words[key]:say(words,"code.else",{code})}
function sayError(error,words){if(!(error instanceof PrivstatsError))return sentenceOf("failed",words);
const known=Object.hasOwn(words,`code.${error.code}`);
return known||words.lang!=="en"?sentenceOf(error.code,words):error.message}
const[MOST_BYTES,MOST_PROBLEM]=[1<<22,1<<16];
const[FIRST_MS,LONGEST_MS,PATIENCE_MS,REQUEST_MS]=[500,30_000,2*3_600_000,30_000];
const KEEPALIVE=60_000;
const HOUR=3_600_000;
const PLAIN={credentials:"omit",referrerPolicy:"no-referrer",redirect:"error"};
async function textOf(response,most){const reader=response.body?.getReader();
const decoder=new TextDecoder("utf-8",{fatal:true});
let[text,size]=["",0];
for(let read;reader&&!(read=await reader.read()).done;){size+=read.value.length;
if(size>most){await reader.cancel();
refuse("too_large","the study's server shows too much")}
text+=decoder.decode(read.value,{stream:true})}
return text+decoder.decode()}
async function problemOf(response){let told={};
try{told=JSON.parse(await textOf(response,MOST_PROBLEM))}catch{}
const named=typeof told?.code==="string"&&/^[a-z_]{1,40}$/.test(told.code);
const code=named?told.code:`http_${response.status}`;
const retry=named?told.retry===true:response.status>=500||[408,429].includes(response.status);
return{code,retry,after:Number(response.headers.get("Retry-After"))*1000||0}}
async function within(ms,outer,work){const inner=new AbortController();
const timer=setTimeout(()=>inner.abort(),ms);
try{return await work(outer?AbortSignal.any([outer,inner.signal]):inner.signal)}finally{clearTimeout(timer)}
}
async function manifestOf(leader,run,{fetch,now}){const asked=async(signal)=>{const response=await fetch(`${leader}/v1/runs/${run}`,{...PLAIN,signal});
if(response.ok)return{date:response.headers.get("Date"),text:await textOf(response,MOST_BYTES)};
const{code,retry}=await problemOf(response);
throw new PrivstatsError(code,sentenceOf(code),{retry})};
let found;
try{found=await within(REQUEST_MS,undefined,asked)}catch(error){if(error instanceof PrivstatsError)throw error;
throw new PrivstatsError("unreachable",sentenceOf("unreachable"),{retry:true})}
if(Math.abs(Date.parse(found.date)-now())>HOUR)refuse("clock",sentenceOf("clock"));
try{return JSON.parse(found.text)}catch{return refuse("wrong_study","the study's server shows another study than this page: tell who invited you")}
}
async function attempt(url,bytes,{fetch,signal:outer}){const headers={"Content-Type":"application/vnd.privstats.report","Privstats-Signature":toHex(bytes.subarray(-64))};
const keepalive=bytes.length<KEEPALIVE;
const limit=REQUEST_MS+bytes.length/64;
try{return await within(limit,outer,async(signal)=>{const response=await fetch(url,{method:"PUT",body:bytes,headers,...PLAIN,keepalive,signal});
if(response.ok)return "sent";
const{code,retry,after}=await problemOf(response);
if(code==="already_here")return code;
if(!retry)throw new PrivstatsError(code,sentenceOf(code));
return{after,code}})}catch(error){if(error instanceof PrivstatsError||outer?.aborted)throw error;
return{after:0,code:"unreachable"}}
}
async function deliver(url,bytes,{fetch,signal,onWaiting=()=>{},patience=PATIENCE_MS}){const end=Date.now()+patience;
for(let pause=FIRST_MS;;pause=Math.min(2*pause,LONGEST_MS)){const found=await attempt(url,bytes,{fetch,signal});
if(typeof found==="string")return found;
const wait=Math.max(found.after,pause*(0.5+Math.random()));
if(Date.now()+wait>end)throw new PrivstatsError(found.code,ENGLISH.stopped,{retry:true});
onWaiting({code:found.code,text:ENGLISH.waiting});
await paused(wait,signal)}
}
function whenBack(work){const seen=()=>globalThis.document?.visibilityState!=="hidden"&&work();
const heard={online:work,visibilitychange:seen};
for(const[name,listener]of Object.entries(heard))globalThis.addEventListener?.(name,listener);
return()=>{for(const[name,listener]of Object.entries(heard))globalThis.removeEventListener?.(name,listener)}}
function paused(ms,signal){return new Promise((resolve,reject)=>{const over=(ended)=>()=>{clearTimeout(timer);
unheard();
signal?.removeEventListener("abort",stop);
ended(signal?.reason)};
const[awake,stop]=[over(resolve),over(reject)];
const timer=setTimeout(awake,ms);
const unheard=whenBack(awake);
if(signal?.aborted)stop();
signal?.addEventListener("abort",stop)})}
const NEAR=powerOfTwo(-45);
const MISSING=
/^(|[+-]?inf(inity)?|#n\/a|#n\/a n\/a|#na|-1\.#ind|-1\.#qnan|-nan|1\.#ind|1\.#qnan|<na>|n\/a|na|nan|nat|none|null)$/i;
const NUMBER=/^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?$/i;
const READ_OTHERWISE=
/\0|\p{Surrogate}|^[\s\x1c-\x1f\x85([]|[\s\x1c-\x1f\x85]$|^(true|false)$|^[0-9]{4}-[0-9]{2}-[0-9]{2}/iu;
const LONGEST=1024;
const OTHER="\u0001";
function same(value){const[,head,last,tail,exponent]=value.toExponential(100).match(/^(-?\d\.\d{13})(\d)(\d+)(e.+)$/);
const down=/^50*$/.test(tail)&&"02468".includes(last);
return Number(down?head+last+exponent:value.toPrecision(15))}
function alike(number,marks){for(const mark of marks){if(number!==mark&&Math.abs(number-mark)<=NEAR*Math.abs(mark)&&same(number)===same(mark))return mark}
return number}
const columnsOf=({variables,numbers=[]})=>[...variables,...numbers.map((each)=>({...each,edges:[each.low,each.high],open:"none"}))];
function cellsOf({values,edges,closed="left",open="both",other,missing},words=ENGLISH){const named=edges?binsOf(edges,closed,open,words):values.map(String);
return[...named,...(other?[words["cell.other"]]:[]),...(missing?[words["cell.missing"]]:[])]}
function binsOf(edges,closed,open,words){const left=closed==="left";
return edges.slice(1).map((high,i)=>{const low=edges[i];
const first=i===0&&["both","below"].includes(open);
const last=i===edges.length-2&&["both","above"].includes(open);
const key=last?(left?"more":"over"):first?(left?"under":"upTo"):"between";
return say(words,`cell.${key}`,{low:String(low),high:String(high)})})}
function cellOf(variable,value){if(value===null){if(!variable.missing)refuse("no_cell",`"${variable.name}" needs an answer`);
return cellsOf(variable).length-1}
return variable.edges?binOf(variable,value):categoryOf(variable,value)}
function binOf({name,edges,closed="left",open="both"},value){if(typeof value!=="number"||!Number.isFinite(value))refuse("wrong_type",`"${name}" needs a number`);
const seen=alike(value,edges);
const[low,high]=[edges[0],edges.at(-1)];
if((seen<low&&!["both","below"].includes(open))||(seen>high&&!["both","above"].includes(open))){refuse("no_cell",`"${name}" must lie between ${low} and ${high}`)}
return edges.slice(1,-1).filter((cut)=>(closed==="left"?cut<=seen:cut<seen)).length}
function categoryOf(variable,value){const{name,values,other}=variable;
const whole=typeof values[0]==="number";
if(whole?!Number.isInteger(value):typeof value!=="string"){refuse("wrong_type",`"${name}" needs ${whole ? "a whole number" : "a text"}`)}
const place=values.indexOf(whole?alike(value,values):value);
if(place>=0)return place;
if(!other||!(whole||isPlain(value,values)))refuse("no_cell",`"${name}" needs one of the listed answers`);
return values.length}
function isPlain(text,values){const normal=text.normalize("NFC")===text&&text.length<=LONGEST;
const spelled=!NUMBER.test(text)&&!MISSING.test(text)&&!READ_OTHERWISE.test(text);
return normal&&spelled&&!values.some((value)=>value.normalize("NFC").trim()===text)}
const COUNT_SCALE=4096;
const EXACT=powerOfTwo(53);
const KINDS={counts:{keys:"variables tables numbers",layout:(schema)=>{const tables=tablesOf(schema);
const groups=sumOf(tables.map((table)=>table.groups));
return[sumOf(tables.map((table)=>table.size)),...(groups?[groups,groups]:[])]},measure:counts},classes:{keys:"classes features statistics clip_norm grid_bits nonnegative class_names feature_names",layout:({classes,features,statistics})=>[classes,classes*features,...(statistics==="NAB"?triangle(features):[])],measure:classes},ridge:{keys:"features targets clip_norm target_bound grid_bits folds nonnegative feature_names",layout:({features,targets})=>[...triangle(features),features*targets,1],measure:ridge}};
function layoutOf(schema){const kind=Object.hasOwn(KINDS,schema.task)?KINDS[schema.task]:unsupported(schema.task);
others(schema,`task transform ${kind.keys}`.split(" "),(key)=>unsupported(`schema.${key}`));
if(schema.transform?.length)unsupported("schema.transform");
if(schema.task==="classes"&&!["NA","NAB"].includes(schema.statistics)){unsupported(`the statistics ${schema.statistics}`)}
if(schema.task==="ridge"&&schema.folds!==1)unsupported("several folds");
return kind.layout(schema)}
function measure(schema,records){layoutOf(schema);
if(records===null||typeof records!=="object")refuse("wrong_type","records must be an object of columns");
return KINDS[schema.task].measure(schema,records)}
function triangle(size){return[size,(size*(size-1))/2]}
const sumOf=(sizes)=>sizes.reduce((sum,size)=>sum+size,0);
function tablesOf(schema){const asked=columnsOf(schema);
const own=(schema.numbers??[]).map(({name,by=[]})=>[...by,name]);
return[...schema.tables,...own].map((names)=>{const crossed=names.map((name)=>asked.findIndex((each)=>each.name===name));
const size=crossed.reduce((cells,at)=>cells*cellsOf(asked[at]).length,1);
const last=asked[crossed.at(-1)];
return{crossed,size,last,groups:"low" in last?size/cellsOf(last).length:0}})}
function columns(records,names){others(records,names,(name)=>refuse("wrong_type",`the plan has no column "${name}"`));
const lists=names.map((name)=>{const values=Object.hasOwn(records,name)?records[name]:undefined;
if(!Array.isArray(values))refuse("wrong_type",`"${name}" must be a list with one value per record`);
return Array.from(values)});
if(lists.some(({length})=>length!==lists[0].length))
refuse("wrong_type","the columns have different lengths");
return lists}
function counts(schema,records){const asked=columnsOf(schema);
const lists=columns(records,asked.map(({name})=>name));
const places=lists.map((values,at)=>values.map((value)=>cellOf(asked[at],value)));
const[{length}]=lists;
const[vector,T,x,q]=parts(schema);
requireRoom(length,x?COUNT_SCALE*COUNT_SCALE:COUNT_SCALE);
let[start,first]=[0,0];
for(const{crossed,size,last,groups}of tablesOf(schema)){for(let record=0;record<length;record++){const cell=crossed.reduce((cells,at)=>cells*cellsOf(asked[at]).length+places[at][record],0);
T[start+cell]+=COUNT_SCALE;
if(groups){const steps=stepsOf(last,lists[crossed.at(-1)][record]);
const group=first+Math.floor((cell*groups)/size);
x[group]+=steps;
q[group]+=steps*steps}
}
start+=size;
first+=groups}
return{vector,records:length}}
function stepsOf({low,high},value){const steps=value===null?0:rint((value-(low+high)/2)*(COUNT_SCALE/((high-low)/2)));
return Math.max(-COUNT_SCALE,Math.min(steps,COUNT_SCALE))}
function requireRoom(count,bound){if(count*bound>=EXACT)refuse("too_many_records","too many records")}
function pairs(records,features){const[X,y]=columns(records,["X","y"]);
return{X:X.map((row)=>numbers("X",row,features)),y}}
function numbers(name,row,width){if((!Array.isArray(row)&&!(row instanceof Float64Array))||row.length!==width)
refuse("wrong_type",`a row of ${name} must be a list of ${width} numbers`);
const values=Array.from(row);
if(!values.every((value)=>typeof value==="number"&&Number.isFinite(value))){refuse("wrong_type",`${name} must hold finite numbers`)}
return values}
function gridOf({grid_bits:bits,clip_norm:norm,nonnegative}){const radius=powerOfTwo(bits);
return{radius,scale:radius/norm,nonnegative}}
function addGram(row,diagonal,above){let at=0;
for(let i=0;i<row.length;i++){diagonal[i]+=row[i]*row[i];
for(let j=i+1;j<row.length;j++)above[at++]+=row[i]*row[j]}
}
function parts(schema){const sizes=layoutOf(schema);
const vector=new Float64Array(sumOf(sizes));
let start=0;
return[vector,...sizes.map((size)=>vector.subarray(start,(start+=size)))]}
function classes(schema,records){const{X,y}=pairs(records,schema.features);
const labels=y.map((label)=>classOf(schema,label));
const[vector,N,A,diagonal,above]=parts(schema);
const grid=gridOf(schema);
requireRoom(X.length,Math.max(grid.radius*grid.radius,COUNT_SCALE));
X.forEach((row,record)=>{const whole=quantize(row,grid);
const start=labels[record]*schema.features;
N[labels[record]]+=COUNT_SCALE;
whole.forEach((value,i)=>(A[start+i]+=value));
if(diagonal)addGram(whole,diagonal,above)});
return{vector,records:X.length}}
function classOf({classes:count,class_names:names},label){if(names?typeof label!=="string":!Number.isInteger(label)){refuse("wrong_type",`y needs ${names ? "the names of classes" : "whole numbers"}`)}
const place=names?names.indexOf(label):label;
if(place<0||place>=count)refuse("no_cell","y has a label that is no class of the plan");
return place}
function ridge(schema,records){const{X,y}=pairs(records,schema.features);
const[vector,diagonal,above,h,q]=parts(schema);
const grid=gridOf(schema);
const target={radius:grid.radius,scale:grid.radius/schema.target_bound};
requireRoom(X.length,grid.radius*grid.radius);
const targets=y.map((each)=>numbers("y",typeof each==="number"?[each]:each,schema.targets));
X.forEach((row,record)=>{const a=quantize(row,grid);
const b=quantize(targets[record],target);
addGram(a,diagonal,above);
a.forEach((left,i)=>b.forEach((right,j)=>(h[i*b.length+j]+=left*right)));
b.forEach((right)=>(q[0]+=right*right))});
return{vector,records:X.length}}
const KEYS={plan:"version schema cohort privacy aggregation devices",aggregation:"graph min_count protocol panel spare_bits",privacy:"model unit adjacency epsilon delta shares max_records_per_client",devices:"organisations registrar registrar_key page most_runs stated_epsilon words exact texts",texts:"title questions",questions:"question help answers"};
const NUMBERS=/"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const wrong=()=>
refuse("wrong_study","the study's server shows another study than this page: tell who invited you");
const known=(table,name)=>others(table,KEYS[name].split(" "),(key)=>unsupported(`${name}.${key}`));
async function runOf(manifest,pins,now){const[run,roster]=[fromHex(manifest?.run),fromHex(manifest?.roster,32)];
if(!run||run.length<16||!roster||manifest.version!==1||typeof manifest.plan!=="string")wrong();
if(!(manifest.closes>0))wrong();
const digest=await sha256(utf8(manifest.plan));
if(manifest.run!==pins.run||toHex(await studyOf(run,digest,roster))!==pins.study)wrong();
const plan=parsed(manifest.plan);
checkPlan(plan);
const stated=statedBy(manifest,plan,digest);
const parameters=await parametersDigest(stated);
const members=await panelOf(manifest,plan,{parameters,roster,now});
return{...stated,plan,context:await contextOf(parameters,roster,members),boxKeys:members.map(({boxKey})=>boxKey),identities:members.map(({identity})=>identity),run:manifest.run,study:pins.study,until:Math.min(...members.map(({until})=>until)),closes:manifest.closes}}
function parsed(text){for(const[token]of text.matchAll(NUMBERS)){if(/^-?\d+$/.test(token)&&!Number.isSafeInteger(Number(token)))unsupported("a number beyond 2^53")}
return JSON.parse(text)}
function checkPlan(plan){if(plan.version!==1)unsupported("a plan of another version");
known(plan,"plan");
for(const name of["aggregation","privacy"])known(plan[name],name);
if(!plan.devices)unsupported("a plan that is not for devices");
known(plan.devices,"devices");
for(const texts of Object.values(plan.devices.texts??{})){known(texts,"texts");
for(const each of Object.values(texts.questions??{}))known(each,"questions")}
if(plan.aggregation.protocol!=="split")unsupported("another protocol than split");
const{model,unit}=plan.privacy;
if(model!=="panel"&&!(["none","central"].includes(model)&&plan.devices.exact))unsupported(`${model} noise`);
if(model!=="none"&&unit!=="client"&&plan.devices.words!=="per record")unsupported("a promise per record");
layoutOf(plan.schema)}
function statedBy(manifest,{schema,cohort,aggregation,privacy},plan){const{clients,min_survivors:least,colluders,segments,noisy_helpers:noisyHelpers}=manifest;
const same=clients===cohort.clients&&least===cohort.min_survivors&&colluders===cohort.colluders;
const sizes=layoutOf(schema);
const fits=
Array.isArray(segments)&&
segments.length===sizes.length&&
segments.every((pair,i)=>pair?.[0]===sizes[i]&&Number.isInteger(pair[1])&&pair[1]>=1&&pair[1]<=62);
if(!same||!fits||noisyHelpers!==(privacy.model==="panel"))wrong();
return{clients,least,colluders,helpers:aggregation.panel.length-1,segments,plan,noisyHelpers}}
async function panelOf(manifest,{aggregation,devices},bound){const{panel}=aggregation;
const told=[manifest.panel,manifest.offers,devices.organisations];
if(panel.length<2||told.some((list)=>!Array.isArray(list)||list.length!==panel.length))wrong();
const members=await Promise.all(panel.map((identity,place)=>memberOf(identity,place,manifest,bound)));
for(const field of["identity","boxKey"]){if(new Set(members.map((member)=>toHex(member[field]))).size!==members.length)wrong()}
return members}
async function memberOf(identity,place,manifest,{parameters,roster,now}){const[named,offer]=[fromHex(identity,32),fromHex(manifest.offers[place],137)];
if(!named||!offer||manifest.panel[place]!==identity)wrong();
const[boxKey,end]=[offer.subarray(33,65),offer.subarray(65,73)];
const statement=join(label("offer-until"),parameters,roster,u8(place),boxKey,end);
const signed=offer[0]===place&&equal(offer.subarray(1,33),named)&&!isLowOrder(named);
if(!signed||!(await verify(named,offer.subarray(73),statement)))wrong();
if(!(await x25519(await x25519Private(new Uint8Array(32).fill(1)),boxKey)))wrong();
const until=end.reduce((seconds,byte)=>seconds*256+byte,0);
if(until<=now/1000)refuse("ended","the keys of this study have ended: it takes no more answers");
return{identity:named,boxKey,until}}
const EIGHTH="c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a";
function isLowOrder(key){const y=Uint8Array.from(key);
y[31]&=127;
const eighth=fromHex(EIGHTH);
const ends=(byte,last)=>y[31]===last&&y.subarray(1,31).every((each)=>each===byte);
const atPrime=y[0]>=236&&y[0]<=238&&ends(255,127);
const opposite=eighth.map((byte,i)=>(i?(i<31?255:127):237)-byte);
return(y[0]<2&&ends(0,0))||atPrime||equal(y,eighth)||equal(y,opposite)}
const TRUSTED_REGISTRAR="the registrar is trusted with every answer";
function few(value){const step=10**(Math.floor(Math.log10(value))-1);
return Number((Math.ceil(value/step)*step).toPrecision(2))}
function oneIn(delta){const[digits,exponent]=delta.toExponential().split("e");
const whole=digits.replace(".","");
const found=String(10n**BigInt(whole.length-1-Number(exponent))/BigInt(whole));
return Number(found.slice(0,2).padEnd(found.length,"0"))}
function wordsOf({schema,cohort,privacy,devices},words,texts){const{organisations,registrar,page,most_runs:runs,exact}=devices;
const word=(about,key,values={},brief=false)=>({about,key,values,brief,text:say(words,key,values)});
const own=page===TRUSTED_REGISTRAR;
return[word("sent",organisations.length>2?"sent.more":"sent.two",{all:organisations},true),word("made","made",{least:cohort.min_survivors},true),word("promise",...promiseOf(privacy,devices),true),...(exact?[word("promise","trusted",{leader:organisations[0]},true)]:[]),word("final","final",{},true),word("page",own?"page.registrar":"page",{page:own?registrar:page},true),...askedOf(schema,words,texts,word),...(privacy.model==="none"||runs===1?[]:[word("promise","times",{runs})]),word("known","known",{others:[...organisations,registrar]}),word("here","here")]}
function promiseOf({model,delta,unit},{stated_epsilon:epsilon}){if(model==="none")return["exact",{}];
const values={factor:few(Math.exp(epsilon)),chance:oneIn(delta),epsilon,delta};
return[unit==="client"?"promise":"promise.record",values]}
function askedOf(schema,words,texts,word){if(schema.task!=="counts")return[word("asked","asked.sums",{features:schema.features})];
const told=(variable)=>{const{question=variable.name,answers}=askedIn(texts,variable.name);
const listed=(variable.values??[]).map((value)=>labelOf(value,answers));
const cells=[...listed,...cellsOf(variable,words).slice(listed.length)];
return `${question} (${cells.join(", ")})`};
return["asked.counts","asked.numbers"].flatMap((key,i)=>{const asked=columnsOf(schema).filter((each)=>"low" in each===i>0);
return asked.length?[word("asked",key,{asked:asked.map(told)})]:[]})}
const askedIn=(texts,name)=>(Object.hasOwn(texts.questions??{},name)?texts.questions[name]:{});
const labelOf=(value,answers={})=>(Object.hasOwn(answers,value)?answers[value]:String(value));
function textsIn({texts={}},languages){const tags=Object.keys(texts);
const fits=(tag)=>(wanted)=>tag===wanted||wanted.startsWith(`${tag}-`)||tag.startsWith(`${wanted}-`);
const found=languages.flatMap((wanted)=>tags.filter((tag)=>fits(tag)(wanted)))[0]??tags[0];
return found===undefined?{}:{...texts[found],lang:found}}
function fieldsOf(schema,words,texts){if(schema.task!=="counts")unsupported("a form of anything but counts");
return columnsOf(schema).map(({name,values,edges,other,missing=false,open="both"})=>{const{question=name,help,answers}=askedIn(texts,name);
const asked={name,question,...(help?{help}:{})};
if(!edges){const choices=values.map((value)=>({label:labelOf(value,answers),value}));
const fresh=typeof values[0]==="string"?OTHER:Math.max(...values)+1;
if(other)choices.push({label:words["cell.other"],value:fresh});
return{...asked,kind:"choice",optional:missing,choices}}
const min=["both","below"].includes(open)?undefined:edges[0];
const max=["both","above"].includes(open)?undefined:edges.at(-1);
return{...asked,kind:"number",optional:missing,min,max}})}
let[watching,submitted]=[false,false];
const isActive=()=>globalThis.navigator?.userActivation?.isActive===true;
function watchPerson(){if(watching||!globalThis.document)return;
watching=true;
document.addEventListener("submit",({isTrusted})=>(submitted||=isTrusted&&isActive()),true)}
function requirePerson(){if(!globalThis.document)return;
const acted=submitted||isActive();
submitted=false;
if(document.prerendering||!acted)refuse("no_person","nothing is sent before a person presses “Send”")}
const[NAME,REPORTS]=["privstats","reports"];
function inBrowser(){const run=(mode,work)=>transaction(mode,work);
const all=async()=>(await run("readonly",(store)=>store.getAll()))??[];
return{exclusive(id,work){if(!globalThis.navigator?.locks)
refuse("no_storage","this browser cannot keep an answer safely: use another one");
return navigator.locks.request(`${NAME}/${id}`,work)},get:(id)=>run("readonly",(store)=>store.get(id)),async add(record){navigator.storage?.persist?.().catch(()=>{});
await run("readwrite",(store)=>store.add(record))},update:(record)=>run("readwrite",(store)=>store.put(record)),remove:(id)=>run("readwrite",(store)=>store.delete(id)),runsOf:async(key)=>(await all()).filter((each)=>each.key===key).length,sealed:async(run)=>(await all()).filter((each)=>each.run===run&&each.state==="sealed")}}
const isAbsent=async()=>indexedDB.databases&&!(await indexedDB.databases()).some(({name})=>name===NAME);
async function transaction(mode,work){try{if(mode==="readonly"&&(await isAbsent()))return undefined;
const database=await opened();
try{return await new Promise((resolve,reject)=>{const held=database.transaction(REPORTS,mode,{durability:"strict"});
const request=work(held.objectStore(REPORTS));
held.oncomplete=()=>resolve(request.result);
held.onabort=held.onerror=()=>reject(held.error)})}finally{database.close()}
}catch{return refuse("no_storage","this browser keeps nothing here (a private window?), so nothing was sent: use another window")}
}
function opened(){return new Promise((resolve,reject)=>{const request=indexedDB.open(NAME,1);
request.onupgradeneeded=()=>request.result.createObjectStore(REPORTS,{keyPath:"id"});
request.onsuccess=()=>resolve(request.result);
request.onerror=request.onblocked=()=>reject(request.error)})}
function inMemory(){const records=new Map();
let last=Promise.resolve();
return{exclusive:(_,work)=>(last=last.then(work,work)),get:async(id)=>records.get(id),async add(record){if(records.has(record.id))throw new Error("kept already");
records.set(record.id,record)},update:async(record)=>void records.set(record.id,record),remove:async(id)=>void records.delete(id),runsOf:async(key)=>[...records.values()].filter((each)=>each.key===key).length,sealed:async(run)=>[...records.values()].filter((each)=>each.run===run&&each.state==="sealed")}}
async function sendKept({id,run,index,report},{leader,store,...options}){const found=await deliver(`${leader}/v1/runs/${run}/reports/${index}`,report,options);
const note=async()=>{const kept=await store.get(id);
if(kept)await store.update({...kept,state:"sent",report:null})};
await store.exclusive(id,note).catch(()=>{});
return found}
function outbox(pins,options={}){const{store=inBrowser(),fetch=globalThis.fetch.bind(globalThis),patience,onState=()=>{}}=options;
const leader=leaderOf(pins);
const flying=new Map();
const fly=async(record)=>{const tell=(state,code)=>onState({hash:record.hash,index:record.index,state,code});
const onWaiting=({code})=>tell("waiting",code);
tell("sending");
try{tell(await sendKept(record,{leader,store,fetch,patience,onWaiting}))}catch(error){tell(error.retry?"stopped":"refused",error.code)}
flying.delete(record.id)};
const resume=async()=>{if(globalThis.document?.prerendering)return;
for(const record of await store.sealed(pins.run)){if(record.study===pins.study&&!flying.has(record.id))flying.set(record.id,fly(record))}
await Promise.all(flying.values())};
const again=()=>void resume().catch(()=>{});
again();
return{resume,close:whenBack(again)}}
async function open(invitation,pins,options={}){const{store=inBrowser(),fetch=globalThis.fetch.bind(globalThis),now=Date.now}=options;
const words=wordsIn(options.words);
const languages=options.languages??globalThis.navigator?.languages??[words.lang];
const leader=leaderOf(pins);
watchPerson();
await requirePrimitives();
const{index,code}=await readLink(invitation);
const identity=await identityOf(code);
const run=await runOf(await manifestOf(leader,pins.run,{fetch,now}),pins,now());
if(index>=run.clients)refuse("stranger","this invitation is not for this study: ask who invited you");
if(await isMember(identity.key,run.identities))refuse("wrong_study","this invitation is a member of the panel");
const texts=textsIn(run.plan.devices,languages);
return new Run({...run,...identity,index,leader,store,fetch,now,words,texts})}
const RECORD="privstats/devices/1/kept";
async function identityOf(code){const seed=await seedOf(code);
const former=await publicOf(seed);
const names=[await sha256(utf8(RECORD),u8(0),seed),...(former?[await sha256(former)]:[])].map(toHex);
const key=await signingKey(seed);
seed.fill(0);
return{key,names}}
async function isMember(key,identities){const statement=utf8(RECORD);
const signature=await sign(key,statement);
return(await Promise.all(identities.map((each)=>verify(each,signature,statement)))).includes(true)}
class Run{#held;
#measured=new WeakSet();
constructor(held){this.#held=held;
this.words=wordsOf(held.plan,held.words,held.texts);
this.title=held.texts.title;
this.language=held.texts.lang;
this.index=held.index;
this.study=held.study;
this.closes=held.closes;
Object.freeze(this)}
get fields(){return fieldsOf(this.#held.plan.schema,this.#held.words,this.#held.texts)}
get#ids(){return this.#held.names.map((name)=>`${this.#held.run}/${name}`)}
async#record(){for(const id of this.#ids){const found=await this.#held.store.get(id);
if(found)return found}
return undefined}
async state(){return(await this.#record())?.state??"new"}
measure(records){const{schema,cohort,privacy}=this.#held.plan;
const found=measure(schema,records);
const most=Math.min(cohort.max_records,privacy.max_records_per_client??Infinity);
if(found.records>most)refuse("too_many_records",`the plan allows ${most} records of one device`);
this.#measured.add(found);
return found}
async seal(measured){requirePerson();
if(!this.#measured.delete(measured))
refuse("measured_again","seal a fresh run.measure(records)");
const{store}=this.#held;
return store.exclusive(this.#ids[0],async()=>{const kept=await this.#record();
if(kept)return this.#again(kept);
if((await this.#runs())>=this.#held.plan.devices.most_runs){refuse("most_runs","this invitation has been used as often as its study promised")}
if(this.#held.until<=this.#held.now()/1000)refuse("ended","the keys of this study have ended: it takes no more answers");
const root=crypto.getRandomValues(new Uint8Array(32));
const{run,study,names,index,key}=this.#held;
const report=await reportOf(this.#held,{index,key},measured.vector,root);
measured.vector.fill(0);
const hash=toHex(await sha256(report));
return this.#added({id:this.#ids[0],run,study,key:names[0],index,state:"sealed",hash,report})})}
async#runs(){const counts=await Promise.all(this.#held.names.map((name)=>this.#held.store.runsOf(name)));
return counts.reduce((sum,count)=>sum+count,0)}
async#added(record){try{await this.#held.store.add(record);
return this.#again(record,true)}catch(error){const first=await this.#held.store.get(record.id);
if(!first)throw error;
return this.#again(first,first.hash===record.hash)}
}
#again(kept,own=false){if(kept.study!==this.#held.study)
refuse("wrong_study","an answer to another study is kept under this run: ask who invited you");
if(kept.index!==this.#held.index)
refuse("other_index","this invitation was used with another number: ask who invited you");
if(kept.state==="sent")
refuse("already_sent","An answer was already sent from this browser with this invitation.");
return Object.freeze({hash:kept.hash,bytes:kept.report,own})}
async kept(){const kept=await this.#record();
return kept?.state==="sealed"?this.#again(kept):null}
async send(report,options={}){const{leader,run,index,fetch,store}=this.#held;
const id=(await this.#record().catch(()=>undefined))?.id??this.#ids[0];
return sendKept({id,run,index,report:report.bytes},{leader,fetch,store,...options})}
forget(){const{store}=this.#held;
return store.exclusive(this.#ids[0],()=>Promise.all(this.#ids.map((id)=>store.remove(id))))}
}
function make(name,{on,...attributes}={},...children){const found=document.createElement(name);
for(const[key,value]of Object.entries(attributes)){if(value!==undefined&&value!==false)found.setAttribute(key,value===true?"":value)}
for(const[event,handler]of Object.entries(on??{}))found.addEventListener(event,handler);
found.append(...children);
return found}
function shipped(){const tables=JSON.parse(document.querySelector("script#privstats-words")?.textContent??"{}");
const wanted=navigator.languages.map((tag)=>tag.split("-")[0]);
return tables[wanted.find((lang)=>Object.hasOwn(tables,lang))??"en"]}
function start(main=document.querySelector("main[data-study]"),{words=shipped()}={}){const status=main?.querySelector("[role=status]");
if(!status||!words?.send)
refuse("wrong_type",'a page needs a main with a role="status",and words.json');
const page=new Page(main,status,wordsIn(words));
const read=()=>{const link=location.hash;
if(!link)return;
history.replaceState(null,"",location.pathname+location.search);
page.show(link)};
if(!location.hash)page.ask();
read();
addEventListener("hashchange",read)}
class Page{constructor(main,status,words){this.main=main;
this.pins={...main.dataset};
this.words=words;
this.status=status;
this.heard=new Map();
document.documentElement.lang=words.lang;
this.head(words.title);
this.outbox=outbox(this.pins,{onState:(state)=>this.hear(state)})}
head(title,lang=""){document.title=title;
Object.assign(this.main.querySelector("h1")??{},{textContent:title,lang})}
tell(text,focus=false){this.status.textContent=text;
if(focus)this.status.focus()}
hear(told){const{hash,state,code}=told;
this.heard.set(hash,told);
if(hash!==this.hash&&(this.hash||this.run))return;
const form=this.run&&this.main.querySelector("form");
if(form)form.querySelector("button").disabled=["sending","waiting"].includes(state);
const text=Object.hasOwn(this.words,state)?this.words[state]:sentenceOf(code??state,this.words);
if(this.run&&["sent","already_here"].includes(state))this.done(text);
else this.tell(this.standing(text),this.run&&state!=="waiting");
if(state==="stopped"&&!this.run)this.offer(this.words.send,()=>this.outbox.resume())}
standing(text){return this.stands?`${this.words.stands} ${text}`:text}
clear(selector){for(const each of this.main.querySelectorAll(selector))each.remove()}
place(form){this.clear("form, [data-after]");
this.main.insertBefore(form,this.status)}
offer(text,work,...about){const click=()=>{this.clear("[data-after]");
work()};
const button=make("button",{type:"button","data-after":true,on:{click}},text);
this.status.after(...about,button)}
ask(link=""){const input=make("input",{id:"invitation",type:"text",autocomplete:"off",autocapitalize:"characters",spellcheck:"false",value:link});
const label=make("label",{for:"invitation"},this.words.invitation);
const submit=(event)=>{event.preventDefault();
this.show(input.value)};
const button=make("button",{},this.words.continue);
this.place(make("form",{on:{submit},novalidate:true},label,input,button))}
async show(link){this.run=this.hash=null;
this.stands=false;
this.tell(this.words.opening);
try{const run=await open(link,this.pins,{words:this.words});
const state=await run.state().catch(()=>"new");
const fields=state==="new"?run.fields.map((field,place)=>fieldOf(field,place,this.words)):[];
const submit=(event)=>{event.preventDefault();
if(event.isTrusted)this.answer(fields)};
const boxes=make("div",{lang:run.language},...fields.map(({box})=>box));
const inside=[wordsBox(run,this.words),boxes,make("button",{},this.words.send)];
this.run=run;
this.hash=state==="sealed"?(await run.kept()).hash:null;
if(run.title)this.head(run.title,run.language);
this.place(make("form",{on:{submit},novalidate:true,autocomplete:"off"},...inside));
this.tell("");
if(state==="sent")this.done(this.words.sentBefore);
if(state==="sealed")await this.fly()}catch(error){this.run=null;
this.ask(error.retry||error.code==="clock"?link:"");
this.tell(sayError(error,this.words),true)}
}
async answer(fields){const records=readAll(fields);
if(!records)return;
const button=this.main.querySelector("form button");
button.disabled=true;
this.tell(this.words.sending,true);
try{const report=(await this.run.kept())??(await this.run.seal(this.run.measure(records)));
this.stands||=this.hash!==report.hash&&!report.own;
this.hash=report.hash;
await this.fly()}catch(error){if(error.code==="already_sent"){this.stands=true;
this.done(this.words.sentBefore)}else{button.disabled=false;
this.tell(sayError(error,this.words),true)}
}
}
async fly(){const told=this.heard.get(this.hash);
if(told)this.hear(told);
else this.tell(this.words.sending,true);
await this.outbox.resume();
if(this.main.querySelector("form")&&(await this.run.state())==="sent")this.done(this.words.sentBefore)}
done(text){const forget=async()=>{await this.run.forget();
this.tell(this.words.forgotten,true)};
this.clear("form, [data-after]");
this.tell(this.standing(text),true);
this.offer(this.words.forget,forget,make("p",{"data-after":true},this.words.remembers))}
}
function wordsBox({words:all,study},words){const brief=all.filter((each)=>each.brief).map(({text})=>make("p",{},text));
const list=all
.filter((each)=>!each.brief)
.flatMap(({about,text})=>[make("dt",{},words[`about.${about}`]),make("dd",{},text)]);
const number=study.match(/.{8}/g).join(" ");
const behind=(summary,...inside)=>make("details",{},make("summary",{},summary),...inside);
return make("section",{"aria-labelledby":"before"},make("h2",{id:"before"},words.before),...brief,behind(words.more,make("dl",{},...list)),behind(words.right,make("p",{},words.compare),make("p",{class:"number"},number)))}
function readAll(fields){const records={};
let first=null;
for(const{name,read,error,focus}of fields){const found=read();
error.textContent=found.error??"";
if(found.error)first??=focus;
else records[name]=[found.value]}
first?.();
return first?null:records}
const fieldOf=(field,...more)=>(field.kind==="number"?numberField:choiceField)(field,...more);
function helpOf(help,place){const told=`error-${place}`;
if(!help)return[[],told];
return[[make("p",{id:`help-${place}`},help)],`help-${place} ${told}`]}
function numberField({name,question,min,max,optional,help:about},place,words){const[id,told,silent]=[`field-${place}`,`error-${place}`,`silent-${place}`];
const[help,described]=helpOf(about,place);
const error=make("p",{id:told,class:"error"});
const input=make("input",{id,type:"number",step:"any",autocomplete:"off",inputmode:"decimal","aria-describedby":described,min,max});
const change=()=>{input.disabled=box.checked;
error.textContent=""};
const box=make("input",{id:silent,type:"checkbox",on:{change}});
const side=min===undefined?"upTo":max===undefined?"more":"between";
const range=(min??max)===undefined?"":say(words,`cell.${side}`,{low:String(min),high:String(max)});
const rather=optional
?[make("div",{class:"choice"},box,make("label",{for:silent},words["cell.missing"]))]
:[];
const read=()=>{const wrong=(text)=>{input.setAttribute("aria-invalid","true");
return{error:text}};
input.removeAttribute("aria-invalid");
if(box.checked)return{value:null};
if(input.validity.badInput)return wrong(words["wrong.number"]);
if(Number.isNaN(input.valueAsNumber))return wrong(words[optional?"wrong.silent":"wrong.blank"]);
if(input.validity.rangeUnderflow||input.validity.rangeOverflow)
return wrong(say(words,"wrong.range",{range}));
return{value:input.valueAsNumber}};
const whole=make("div",{class:"field"},make("label",{for:id},question+(range&&` (${range})`)),...help,input,...rather,error);
return{name,box:whole,read,error,focus:()=>input.focus()}}
function choiceField({name,question,choices,optional,help:about},place,words){const told=`error-${place}`;
const[help,described]=helpOf(about,place);
const all=[...choices,...(optional?[{label:words["cell.missing"],value:null}]:[])];
const inputs=all.map((_,i)=>
make("input",{id:`field-${place}-${i}`,type:"radio",name:`field-${place}`,value:String(i)}));
const lines=all.map(({label},i)=>{return make("div",{class:"choice"},inputs[i],make("label",{for:inputs[i].id},label))});
const error=make("p",{id:told,class:"error"});
const box=make("fieldset",{class:"field","aria-describedby":described},make("legend",{},question),...help,...lines,error);
const read=()=>{const at=inputs.findIndex((input)=>input.checked);
return at<0?{error:words["wrong.choice"]}:{value:all[at].value}};
return{name,box,read,error,focus:()=>inputs[0].focus()}}
export { OTHER };
export { PrivstatsError };
export { inBrowser, inMemory };
export { outbox };
export { open };
if (globalThis.document?.querySelector("main[data-study]")) start();
