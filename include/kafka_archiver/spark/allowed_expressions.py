"""The expressions of Spark's SQL that always give the same for the same record, by class; nothing else is taken.

They are Catalyst's, as they are after analysis. What is on neither list, as a function of a new version of Spark, is
refused by name until somebody has looked at it. `KNOWN` has no expression that reads the time, chance, the session, the
user, the host, a file, or how records are divided among tasks.
"""

from collections.abc import Mapping

PACKAGE = "org.apache.spark.sql.catalyst.expressions."

_STRUCTURE = """
    Alias AttributeReference Literal TypedNullLiteral Cast TryEval With CommonExpressionDef CommonExpressionRef
    GetStructField GetArrayStructFields GetArrayItem GetMapValue UpdateFields WithField DropField LambdaFunction
    NamedLambdaVariable NamePlaceholder$ CreateArray CreateMap CreateNamedStruct SemiStructuredExtract KnownNotNull
    KnownNullable KnownNotContainsNull KnownFloatingPointNormalized TypeOf ResolvedCollation Collate Collation
    CheckOverflow RaiseError AssertTrue
"""
_CONDITIONS = """
    And Or Not If CaseWhen Coalesce Nvl Nvl2 NullIf NullIfZero ZeroIfNull NaNvl Between In InSet IsNull IsNotNull
    IsNaN AtLeastNNonNulls EqualTo EqualNullSafe EqualNull GreaterThan GreaterThanOrEqual LessThan LessThanOrEqual
    Greatest Least
"""
_NUMBERS = """
    Abs Acos Acosh Add Asin Asinh Atan Atan2 Atanh BRound Bin BitwiseAnd BitwiseCount BitwiseGet BitwiseNot BitwiseOr
    BitwiseXor BitmapBitPosition BitmapBucketNumber BitmapCount Cbrt Ceil Conv Cos Cosh Cot Csc Divide EulerNumber Exp
    Expm1 Factorial Floor Hypot IntegralDivide Log Log10 Log1p Log2 Logarithm Multiply Pi Pmod Pow Remainder Rint
    Round RoundCeil RoundFloor Sec ShiftLeft ShiftRight ShiftRightUnsigned Signum Sin Sinh Sqrt Subtract Tan Tanh
    ToDegrees ToRadians TryAdd TryDivide TryMod TryMultiply TrySubtract UnaryMinus UnaryPositive WidthBucket
    VectorCosineSimilarity VectorInnerProduct VectorL2Distance VectorNorm VectorNormalize
"""
_TEXTS = """
    Ascii Base64 BinaryPad BinaryPredicate BitLength Chr Concat ConcatWs Contains Decode Elt Encode EndsWith FindInSet
    FormatNumber FormatString Hex ILike InitCap IsValidUTF8 Left Length Levenshtein Like LikeAll LikeAny Lower
    Luhncheck MakeValidUTF8 Mask NotLikeAll NotLikeAny OctetLength Overlay ParseUrl Quote RLike RegExpCount
    RegExpExtract RegExpExtractAll RegExpInStr RegExpReplace RegExpSubStr Reverse Right Sentences SoundEx SplitPart
    StartsWith StringDecode StringInstr StringLPad StringLocate StringRPad StringRepeat StringReplace StringSpace
    StringSplit StringSplitSQL StringToMap StringTranslate StringTrim StringTrimBoth StringTrimLeft StringTrimRight
    Substring SubstringIndex ToBinary ToCharacter ToNumber TryParseUrl TryToBinary TryToNumber TryUrlDecode
    TryValidateUTF8 UnBase64 Unhex Upper UrlDecode UrlEncode ValidateUTF8 Crc32 Md5 Murmur3Hash Sha1 Sha2 XxHash64
    AesDecrypt TryAesDecrypt
"""
_TIMES = """
    AddMonths ConvertTimezone DateAdd DateAddInterval DateAddYMInterval DateDiff DateFormatClass DateFromUnixDate
    DatePart DateSub DatetimeSub DayName DayOfMonth DayOfWeek DayOfYear DivideDTInterval DivideInterval
    DivideYMInterval Extract ExtractANSIIntervalDays ExtractANSIIntervalHours ExtractANSIIntervalMinutes
    ExtractANSIIntervalMonths ExtractANSIIntervalSeconds ExtractANSIIntervalYears ExtractIntervalDays
    ExtractIntervalHours ExtractIntervalMinutes ExtractIntervalMonths ExtractIntervalSeconds ExtractIntervalYears
    FromUTCTimestamp FromUnixTime GetTimestamp Hour LastDay MakeDTInterval MakeDate MakeInterval MakeTimestamp
    MakeTimestampFromDateTime MakeTimestampNTZ MakeYMInterval MicrosToTimestamp MillisToTimestamp Minute Month
    MonthName MonthsBetween MultiplyDTInterval MultiplyInterval MultiplyYMInterval NextDay ParseToDate
    ParseToTimestamp Quarter Second SecondWithFraction SecondsToTimestamp SubtractDates SubtractTimestamps TimeBucket
    TimestampAdd TimestampAddInterval TimestampAddYMInterval TimestampDiff ToUTCTimestamp ToUnixTimestamp TruncDate
    TruncTimestamp TryMakeInterval TryMakeTimestamp TryMakeTimestampFromDateTime UnixDate UnixMicros UnixMillis
    UnixSeconds UnixTimestamp WeekDay WeekOfYear Year YearOfWeek
"""
_COLLECTIONS = """
    ArrayAggregate ArrayAppend ArrayCompact ArrayContains ArrayDistinct ArrayExcept ArrayExists ArrayFilter
    ArrayForAll ArrayInsert ArrayIntersect ArrayJoin ArrayMax ArrayMin ArrayPosition ArrayPrepend ArrayRemove
    ArrayRepeat ArraySize ArraySort ArrayTransform ArrayUnion ArraysOverlap ArraysZip ElementAt Flatten Get MapConcat
    MapContainsKey MapEntries MapFilter MapFromArrays MapFromEntries MapKeys MapSort MapValues MapZipWith Sequence
    Size Slice SortArray TransformKeys TransformValues TryElementAt ZipWith
"""
_DOCUMENTS = """
    CsvToStructs GetJsonObject JsonObjectKeys JsonToStructs LengthOfJsonArray SchemaOfCsv SchemaOfJson SchemaOfXml
    StructsToCsv StructsToJson StructsToXml XmlToStructs
    IsValidVariant IsVariantNull ParseJson SchemaOfVariant ToVariantObject VariantGet
    ST_AsBinary ST_GeogFromWKB ST_GeomFromWKB ST_SetSrid ST_Srid
"""
_SKETCHES = """
    HllSketchEstimate KllSketchGetNBigint KllSketchGetNDouble KllSketchGetNFloat
    KllSketchGetQuantileBigint KllSketchGetQuantileDouble KllSketchGetQuantileFloat KllSketchGetRankBigint
    KllSketchGetRankDouble KllSketchGetRankFloat ThetaSketchEstimate TupleSketchEstimateDouble
    TupleSketchEstimateInteger TupleSketchSummaryDouble TupleSketchSummaryInteger TupleSketchThetaDouble
    TupleSketchThetaInteger
"""
# Each makes rows of one record: only a function may have them.
_GENERATORS = "Explode PosExplode Inline Stack JsonTuple VariantExplode GeneratorOuter"

_GROUPS = (_STRUCTURE, _CONDITIONS, _NUMBERS, _TEXTS, _TIMES, _COLLECTIONS, _DOCUMENTS, _SKETCHES, _GENERATORS)
KNOWN = frozenset(" ".join(_GROUPS).split())
# A function's own Python, whose code the plan has.
OF_FUNCTIONS = frozenset({"PythonUDF"})
# What Spark evaluates in the place of a known expression, and nobody can write.
REPLACEMENTS = frozenset({"Invoke", "StaticInvoke"})

_REASONS = {
    "the time of the query": "CurrentTimestamp CurrentDate CurrentTime CurrentBatchTimestamp LocalTimestamp Now",
    "the session of Spark": "CurrentTimeZone CurrentDatabase CurrentCatalog CurrentPath VariableReference",
    "who runs it": "CurrentUser",
    "the version of Spark": "SparkVersion",
    "chance": "Rand Randn RandStr Uniform Uuid Shuffle AesEncrypt KllSketchMergeBigint KllSketchMergeDouble "
    "KllSketchMergeFloat",
    "how records are divided among tasks": "MonotonicallyIncreasingID SparkPartitionID",
    "the files and addresses that a document names (its DTD)": "XPathBoolean XPathDouble XPathFloat XPathInt XPathList "
    "XPathLong XPathShort XPathString",
    "the files that Spark reads": "InputFileName InputFileBlockStart InputFileBlockLength",
    "code outside of Spark's SQL": "CallMethodViaReflection TryReflect ScalaUDF ApplyFunctionExpression HiveSimpleUDF "
    "HiveGenericUDF",
    "a file or a library that Spark does not come with": "FromAvro ToAvro SchemaOfAvro FromProtobuf ToProtobuf",
    "how a library writes sketches": "HllUnion KllSketchToStringBigint KllSketchToStringDouble KllSketchToStringFloat "
    "ThetaDifference ThetaIntersection ThetaUnion TupleDifferenceDouble TupleDifferenceInteger "
    "TupleDifferenceThetaDouble TupleDifferenceThetaInteger TupleIntersectionDouble TupleIntersectionInteger "
    "TupleIntersectionThetaDouble TupleIntersectionThetaInteger TupleUnionDouble TupleUnionInteger "
    "TupleUnionThetaDouble TupleUnionThetaInteger",
    "several records": "AggregateExpression WindowExpression TimeWindow SessionWindow WindowTime Grouping GroupingID "
    "VectorAvg VectorSum",
    "other data than the record": "ScalarSubquery Exists ListQuery InSubquery LateralSubquery OuterReference",
}
# What the result of a class depends on besides the record.
DEPENDS: Mapping[str, str] = {name: reason for reason, names in _REASONS.items() for name in names.split()}
